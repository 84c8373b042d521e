#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "controller/nodes/error_text.h"
#include "controller/nodes/remote_process.h"

namespace muster::nodes {

// A program of this machine with a socket as its stdin and stdout, in a session of its own, and a
// pipe as its stderr. One thread.
class ChildProcess : public RemoteProcess {
 public:
  // The error names the program and why it can't be started.
  static absl::StatusOr<StartedProcess> Start(const std::vector<std::string>& words);

  ChildProcess(std::string name, pid_t pid, UniqueFd errors, UniqueFd error_writer)
      : name_(std::move(name)),
        pid_(pid),
        errors_(std::move(errors)),
        error_writer_(std::move(error_writer)) {}
  // Ends the whole process group: TERM, a second later KILL; reaps.
  ~ChildProcess() override;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  std::string Name() const override { return name_; }
  int error_fd() const override { return errors_.get(); }
  void ReadErrors() override;
  void DropErrors() override;
  std::string ErrorTail() const override { return error_text_.Tail(); }
  std::optional<int> WaitEnd(std::chrono::milliseconds limit) override;

 private:
  const std::string name_;
  const pid_t pid_;
  UniqueFd errors_;
  UniqueFd error_writer_;  // until DropErrors
  ErrorText error_text_;
  std::optional<int> wait_status_;
};

}  // namespace muster::nodes
