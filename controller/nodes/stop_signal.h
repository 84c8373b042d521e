#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>

#include "common/unique_fd.h"

namespace muster::nodes {

// Says "stop" to a thread that may be waiting in poll() or sleeping. Any thread.
class StopSignal {
 public:
  StopSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  // For good.
  void Set();
  bool is_set() const { return set_.load(); }
  // Readable once set.
  int fd() const { return fd_.get(); }
  // Sleeps; true if set before or meanwhile.
  bool WaitFor(std::chrono::milliseconds pause) const;

 private:
  std::atomic<bool> set_{false};
  UniqueFd fd_;
};

}  // namespace muster::nodes
