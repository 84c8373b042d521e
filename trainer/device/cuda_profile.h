#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/device/ops.h"

namespace muster::device {

// Times what one stream does, from mark to mark. One thread; throws CudaError.
class CudaProfile {
 public:
  explicit CudaProfile(cudaStream_t stream) { Mark("", stream); }
  ~CudaProfile();
  CudaProfile(const CudaProfile&) = delete;
  CudaProfile& operator=(const CudaProfile&) = delete;

  // What was enqueued since the last mark is called `name`.
  void Mark(std::string_view name, cudaStream_t stream);
  // By name, the longest first. Waits for the last mark.
  std::vector<OpTime> Times() const;

 private:
  std::vector<std::pair<std::string, cudaEvent_t>> marks_;
};

}  // namespace muster::device
