#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "controller/logs/attempt_logs.h"
#include "controller/logs/log_registry.h"

namespace muster::logs {

// The real registry: files below each attempt's output folder (docs/logs.md). Bytes go to the page
// cache on the caller's thread and to disk on the organ's own thread, which then acknowledges them.
// No log text stays in memory.
class FileRegistry : public LogRegistry, public AttemptLogs {
 public:
  struct Options {
    std::chrono::milliseconds sync_interval{200};  // longest wait of a byte for its fdatasync
    uint64_t sync_bytes =
        1 << 20;  // ... or this many unsynced bytes; well below what a node sends without an ack
    std::chrono::milliseconds retry_interval{
        1000};  // pause before a failed stream is asked for again
  };
  // A stream of the attempt can't be written (the message names the file and why), or OK: it can
  // again.
  using ErrorCallback = std::function<void(const v1::AttemptId&, const absl::Status&)>;

  static std::unique_ptr<FileRegistry> Make(const Options& options);

  // Called on threads of the log organ or of links; set before the first Open.
  virtual void SetErrorCallback(ErrorCallback callback) = 0;
};

}  // namespace muster::logs
