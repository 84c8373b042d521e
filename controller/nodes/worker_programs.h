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
// Each file is read and packed once, when the first host needs it. Those of our own architecture
// are this controller's build and stay what they were when they were first looked at; others may
// come, change and go while the controller runs. Any thread.
class WorkerPrograms {
 public:
  // `musterd`: path of this machine's own.
  explicit WorkerPrograms(std::string musterd);

  const std::string& musterd() const { return musterd_; }
  // Those that are there now; empty when not even this machine's own programs are.
  std::vector<WorkerBuild> Builds();
  // FailedPrecondition: none for this architecture, with what to do about it; the file is not what
  // it was when the checksum was taken.
  absl::StatusOr<std::shared_ptr<const std::string>> Content(const std::string& arch,
                                                             const std::string& file, bool gzip);

 private:
  // Tells whether a file is the one that was read.
  struct Stamp {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t size = -1;
    int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  // A program, and its content once it was asked for.
  struct Program {
    std::string sum;
    std::shared_ptr<const std::string> plain;
    std::shared_ptr<const std::string> packed;
  };
  struct Known {
    WorkerBuild build;
    std::vector<Stamp> stamps;                // of the files, as they were before they were read
    std::map<std::string, Program> programs;  // by file name
  };
  static std::vector<Stamp> StampsIn(const std::string& folder);
  static absl::StatusOr<Known> Load(const std::string& arch, const std::string& folder);
  std::string Folder(const std::string& arch) const;
  void Look(const std::string& arch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string musterd_;
  absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);  // by architecture
};

}  // namespace muster::nodes
