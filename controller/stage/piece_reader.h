#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "controller/stage/scan.h"

namespace muster::stage {

// Reads pieces of a scanned tree for the nodes that ask the controller, on a thread of its own.
class PieceReader {
 public:
  // Called on the reader's thread. FailedPrecondition: the file was changed since it was scanned.
  using Done =
      std::function<void(const std::string& host, uint32_t piece, absl::StatusOr<std::string>)>;
  PieceReader(std::shared_ptr<const ScannedTree> scanned, Done done);
  // No `done` comes any more.
  ~PieceReader();

  // Pieces of the manifest come first. Any thread; returns at once.
  void Want(const std::string& host, uint32_t piece);

 private:
  struct Wanted {
    std::string host;
    uint32_t piece = 0;
  };
  void Run();
  absl::StatusOr<std::string> Read(uint32_t piece) const;

  const std::shared_ptr<const ScannedTree> scanned_;
  const Done done_;
  absl::Mutex mutex_;
  std::deque<Wanted> wanted_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::stage
