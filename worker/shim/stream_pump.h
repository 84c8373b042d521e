#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/unique_fd.h"

namespace muster::shim {

// Moves one pipe of the rank into its log file, byte for byte, and notes in the `.times` file when.
// Never stops reading because writing failed: the rank must not block on our disk; such bytes are
// counted as lost. Shim's only thread.
class StreamPump {
 public:
  // Creates the files (mode 0600) at once. `times_path` may be null. The reason of a failure is in
  // error().
  StreamPump(const char* log_path, const char* times_path, const Clock& clock);

  // Begins to read from `pipe`, which must be non-blocking.
  void Attach(UniqueFd pipe) { pipe_ = std::move(pipe); }

  // Moves what is there, at most about 1 MiB so that other streams get their turn. True if anything
  // was read.
  bool Pump();

  // Stops reading; what is still in the pipe is dropped.
  void Close() { pipe_.reset(); }

  int fd() const { return pipe_.get(); }
  bool open() const { return static_cast<bool>(pipe_); }
  uint64_t size() const { return size_; }
  uint64_t lost() const { return lost_; }
  // The first failure: "write stdout.log: No space left on device"; empty if there was none.
  const std::string& error() const { return error_; }

 private:
  void Write(const char* data, size_t count);
  void NoteTime();
  void Fail(const char* what, const char* path);

  const Clock& clock_;
  const std::string log_path_;
  const std::string times_path_;
  UniqueFd pipe_;
  UniqueFd log_;
  UniqueFd times_;
  uint64_t size_ = 0;
  uint64_t lost_ = 0;
  int64_t last_time_ns_ = INT64_MIN;
  std::string error_;
};

}  // namespace muster::shim
