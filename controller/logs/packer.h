#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

namespace muster::logs {

// Packs segments, one after the other on a thread of low priority, each as the user whose file it
// is. What is left at the end is packed by the next process. Any thread.
class Packer {
 public:
  // `on_error` is told what could not be packed; the segment then stays as it is.
  explicit Packer(std::function<void(const absl::Status&)> on_error);
  ~Packer();
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  void Add(const std::string& path, uint32_t uid, uint32_t gid);

 private:
  struct Job {
    std::string path;
    uint32_t uid = 0;
    uint32_t gid = 0;
  };
  void Run();

  const std::function<void(const absl::Status&)> on_error_;
  absl::Mutex mutex_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster::logs
