#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace muster::nodes {

// A program with a socket as its stdin and stdout, in a session of its own, and a pipe as its
// stderr. One thread.
class ChildProcess {
 public:
  struct Started;
  // The error names the program and why it can't be started.
  static absl::StatusOr<Started> Start(const std::vector<std::string>& words);

  ChildProcess(pid_t pid, UniqueFd errors, UniqueFd error_writer)
      : pid_(pid), errors_(std::move(errors)), error_writer_(std::move(error_writer)) {}
  // Ends the whole process group: TERM, a second later KILL; reaps.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  // Readable when there is news on stderr.
  int error_fd() const { return errors_.get(); }
  // Reads what is on stderr now.
  void ReadErrors();
  // From now on nobody reads stderr for a long time: what the pipe can't hold is dropped, and never
  // blocks the program.
  void DropErrors();
  // The last lines of stderr on one line, "" if none.
  std::string ErrorTail() const;
  // The status of waitpid once it has ended, waiting for that at most so long.
  std::optional<int> WaitEnd(std::chrono::milliseconds limit);

 private:
  pid_t pid_;
  UniqueFd errors_;
  UniqueFd error_writer_;   // until DropErrors
  std::string error_text_;  // bounded
  std::optional<int> wait_status_;
};

struct ChildProcess::Started {
  ChildProcess process;
  UniqueFd socket;  // our end; non-blocking
};

}  // namespace muster::nodes
