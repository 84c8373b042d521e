#include "controller/logs/packer.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "controller/logs/fs_user.h"
#include "controller/logs/segments.h"

namespace muster::logs {

Packer::Packer(std::function<void(const absl::Status&)> on_error)
    : on_error_(std::move(on_error)), thread_([this] { Run(); }) {}

Packer::~Packer() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  thread_.join();
}

void Packer::Add(const std::string& path, uint32_t uid, uint32_t gid) {
  absl::MutexLock lock(&mutex_);
  jobs_.push_back({path, uid, gid});
}

void Packer::Run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
  while (true) {
    Job job;
    {
      absl::MutexLock lock(&mutex_);
      const auto woken = [this] {
        mutex_.AssertHeld();
        return stop_ || !jobs_.empty();
      };
      mutex_.Await(absl::Condition(&woken));
      if (stop_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    const ScopedFsUser user(job.uid, job.gid);
    if (const absl::Status status = PackSegment(job.path); !status.ok()) on_error_(status);
  }
}

}  // namespace muster::logs
