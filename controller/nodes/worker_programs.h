#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::nodes {

// The worker's two programs for one architecture, as they lie on this machine.
struct WorkerBuild {
  std::string arch;      // as uname -m says it
  std::string checksum;  // SHA-256 of muster-shim followed by musterd, in hexadecimal digits
  uint64_t bytes = 0;    // of both together
};

// What is pushed to hosts without a worker: musterd and muster-shim of this machine's own
// architecture, which lie beside `muster`, and of others, in ../libexec/muster/<arch>/ from there.
// Each file is read and packed once, when the first host needs it. Any thread.
class WorkerPrograms {
 public:
  // `musterd`: path of this machine's own.
  explicit WorkerPrograms(std::string musterd);

  const std::string& musterd() const { return musterd_; }
  // Empty when not even this machine's own programs are there.
  const std::vector<WorkerBuild>& Builds();
  // FailedPrecondition: none for this architecture, with what to do about it; the file is not what
  // it was when the checksum was taken.
  absl::StatusOr<std::shared_ptr<const std::string>> Content(const std::string& arch,
                                                             const std::string& file, bool gzip);

 private:
  std::string Folder(const std::string& arch) const;
  void LookForBuilds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string musterd_;
  absl::Mutex mutex_;
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<WorkerBuild> builds_ ABSL_GUARDED_BY(mutex_);          // unchanged once looked_
  std::map<std::string, std::string> sums_ ABSL_GUARDED_BY(mutex_);  // by path
  std::map<std::string, std::shared_ptr<const std::string>> contents_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace muster::nodes
