#pragma once

#include <cstdint>
#include <string>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "worker/shim/log_file.h"
#include "worker/shim/times_log.h"

namespace muster::shim {

// Moves one pipe of the rank into its log file, byte for byte, and notes in the `.times` file when.
//  * A full quota makes the rank wait (waits()) or drops the oldest bytes, as the quota says.
//  * A full disk never makes the rank wait, since it may never get better: such bytes are counted
//  as
//    lost, and a line of ours stands in their place as soon as one can be written.
// Shim's only thread.
class StreamPump {
 public:
  struct Files {
    std::string log;
    std::string times;  // empty: none is kept
    LogQuota quota;
    LogFloor* floor = nullptr;  // with a quota; outlives the pump
    size_t stream = 0;
  };

  // Creates the files (mode 0600) at once. The reason of a failure is in error().
  StreamPump(Files files, const Clock& clock);

  // Begins to read from `pipe`, which must be non-blocking.
  void Attach(UniqueFd pipe) { pipe_ = std::move(pipe); }

  // Moves what is there, at most about 1 MiB so that other streams get their turn. True if anything
  // was read. `last`: the rank has ended and this is the last look, so the quota counts no more.
  bool Pump(bool last = false);

  // Stops reading; what is still in the pipe is dropped.
  void Close();

  // The controller has what lies below.
  void Acknowledge(uint64_t offset);

  // -1 while nothing is to be read.
  int fd() const { return waits_ ? -1 : pipe_.get(); }
  bool open() const { return static_cast<bool>(pipe_); }
  bool waits() const { return waits_; }
  uint64_t size() const { return log_.size(); }
  uint64_t lost() const { return lost_; }
  // The first failure: "write stdout.log: No space left on device"; empty if there was none.
  const std::string& error() const { return error_; }

 private:
  void Write(const char* data, uint64_t count);
  bool WriteMarker();
  bool FreedSome();
  void Fail(const char* what);

  const Files files_;
  UniqueFd pipe_;
  LogFile log_;
  TimesLog times_;
  bool waits_ = false;
  uint64_t lost_ = 0;
  uint64_t unmarked_ = 0;    // of lost_, those that no marker stands for yet
  bool line_begins_ = true;  // the last byte written was a newline
  std::string error_;
};

}  // namespace muster::shim
