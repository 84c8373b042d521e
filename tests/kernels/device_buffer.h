#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/tensor/cuda_check.h"

namespace muster {

// Device memory of a test or benchmark, aligned to 256 bytes and not initialised.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int64_t bytes) : bytes_(bytes) {
    MUSTER_CUDA_CHECK(cudaMalloc(&data_, static_cast<size_t>(bytes > 0 ? bytes : 1)));
  }
  template <typename T>
  explicit DeviceBuffer(const std::vector<T>& values)
      : DeviceBuffer(static_cast<int64_t>(values.size() * sizeof(T))) {
    MUSTER_CUDA_CHECK(
        cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  template <typename T = void>
  T* get() const {
    return static_cast<T*>(data_);
  }
  int64_t bytes() const { return bytes_; }
  std::span<std::byte> span() const { return {get<std::byte>(), static_cast<size_t>(bytes_)}; }
  void FillBytes(int value) {
    MUSTER_CUDA_CHECK(cudaMemset(data_, value, static_cast<size_t>(bytes_)));
  }
  // Waits for all work of the device.
  template <typename T>
  std::vector<T> ToHost() const {
    MUSTER_CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<T> values(static_cast<size_t>(bytes_) / sizeof(T));
    MUSTER_CUDA_CHECK(
        cudaMemcpy(values.data(), data_, values.size() * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  int64_t bytes_;
};

}  // namespace muster
