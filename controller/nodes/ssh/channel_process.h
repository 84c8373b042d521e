#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/unique_fd.h"
#include "controller/nodes/error_text.h"
#include "controller/nodes/remote_process.h"
#include "controller/nodes/ssh/libssh_handle.h"
#include "controller/nodes/stop_signal.h"

namespace muster::nodes::ssh {

// A channel of an ssh session (a command, or a stream to the next host), carried to and from a
// socket by a thread of its own, with back-pressure both ways and bounded buffers. When the session
// breaks it has ended with 255, as ssh would, and the reason is the last that it says on stderr.
// Methods: one thread.
class ChannelProcess : public RemoteProcess {
 public:
  // `carrier` is what the session itself runs over, if not a plain connection; it ends after it.
  static absl::StatusOr<StartedProcess> Start(SessionPtr session, ChannelPtr channel,
                                              std::unique_ptr<RemoteProcess> carrier);
  ~ChannelProcess() override;
  ChannelProcess(const ChannelProcess&) = delete;
  ChannelProcess& operator=(const ChannelProcess&) = delete;

  std::string Name() const override { return "ssh"; }
  int error_fd() const override { return errors_.get(); }
  void ReadErrors() override;
  // Nothing to do: what the pipe can't hold is dropped from the start.
  void DropErrors() override {}
  std::string ErrorTail() const override { return error_text_.Tail(); }
  std::optional<int> WaitEnd(std::chrono::milliseconds limit) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ChannelProcess(UniqueFd errors, std::unique_ptr<RemoteProcess> carrier)
      : carrier_(std::move(carrier)), errors_(std::move(errors)) {}
  void Run(SessionPtr session, ChannelPtr channel, UniqueFd socket, UniqueFd errors)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // What the carrier says about its end: " (connection lost: ...)" or "".
  std::string Below() const;

  const std::unique_ptr<RemoteProcess> carrier_;  // the thread's
  UniqueFd errors_;
  ErrorText error_text_;
  StopSignal stop_;
  absl::Mutex mutex_;
  std::optional<int> wait_status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::nodes::ssh
