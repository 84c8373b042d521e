#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace muster::bench {

// What nvidia-smi says about the first GPU: "name, driver, power limit" for a report's head; empty
// where there is no nvidia-smi.
std::string DescribeGpu();

// Samples the GPU's SM clock and power in a thread of its own while it lives.
class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  struct Means {
    double megahertz = 0;
    double watts = 0;
    int samples = 0;
  };
  // Ends the sampling. The first seconds, in which clock and power settle, are left out.
  Means Stop();

 private:
  void Sample();

  std::atomic<bool> stop_ = false;
  Means sum_;  // of the thread, until it is joined
  std::thread thread_;
};

}  // namespace muster::bench
