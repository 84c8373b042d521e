#include "trainer/device/cuda_profile.h"

#include <algorithm>
#include <map>

#include "trainer/tensor/cuda_check.h"

namespace muster::device {

CudaProfile::~CudaProfile() {
  for (const auto& [name, event] : marks_) cudaEventDestroy(event);
}

void CudaProfile::Mark(std::string_view name, cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  MUSTER_CUDA_CHECK(cudaEventCreate(&event));
  marks_.emplace_back(name, event);
  MUSTER_CUDA_CHECK(cudaEventRecord(event, stream));
}

std::vector<OpTime> CudaProfile::Times() const {
  MUSTER_CUDA_CHECK(cudaEventSynchronize(marks_.back().second));
  std::map<std::string, OpTime> by_name;
  for (size_t i = 1; i < marks_.size(); ++i) {
    float milliseconds = 0;
    MUSTER_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, marks_[i - 1].second, marks_[i].second));
    OpTime& time = by_name.try_emplace(marks_[i].first, marks_[i].first, 0, 0.0).first->second;
    ++time.count;
    time.milliseconds += static_cast<double>(milliseconds);
  }
  std::vector<OpTime> times;
  for (auto& [name, time] : by_name) times.push_back(std::move(time));
  std::sort(times.begin(), times.end(),
            [](const OpTime& a, const OpTime& b) { return a.milliseconds > b.milliseconds; });
  return times;
}

}  // namespace muster::device
