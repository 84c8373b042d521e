#include "controller/nodes/ssh/channel_process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <utility>

#include "common/status.h"
#include "controller/nodes/ssh/channel_pump.h"

namespace muster::nodes::ssh {
namespace {

// What ssh exits with when the connection, not the command, has failed.
constexpr int kConnectionFailed = 255;
// A carrier whose stream has ended is about to end itself.
constexpr std::chrono::milliseconds kEndSoon{200};

}  // namespace

absl::StatusOr<StartedProcess> ChannelProcess::Start(SessionPtr session, ChannelPtr channel,
                                                     std::unique_ptr<RemoteProcess> carrier) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets) != 0) {
    return PosixError("socketpair");
  }
  UniqueFd ours(sockets[0]);
  UniqueFd theirs(sockets[1]);
  int errors[2];
  if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) != 0) return PosixError("pipe");
  UniqueFd error_reader(errors[0]);
  UniqueFd error_writer(errors[1]);
  std::unique_ptr<ChannelProcess> process(
      new ChannelProcess(std::move(error_reader), std::move(carrier)));
  process->thread_ = std::thread(&ChannelProcess::Run, process.get(), std::move(session),
                                 std::move(channel), std::move(theirs), std::move(error_writer));
  return StartedProcess{.process = std::move(process), .socket = std::move(ours)};
}

ChannelProcess::~ChannelProcess() {
  stop_.Set();
  thread_.join();
}

void ChannelProcess::Run(SessionPtr session, ChannelPtr channel, UniqueFd socket, UniqueFd errors) {
  int status = W_EXITCODE(kConnectionFailed, 0);
  {
    ChannelPump pump(session.get(), channel.get(), socket.get(), errors.get(), stop_);
    const absl::Status why = pump.Run();
    status = pump.wait_status().value_or(status);
    if (!why.ok()) pump.SayError("\n" + std::string(why.message()) + Below() + "\n");
  }
  // The goodbye is sent before anybody hears of the end.
  channel.reset();
  session.reset();
  absl::MutexLock lock(&mutex_);
  wait_status_ = status;
}

std::string ChannelProcess::Below() const {
  if (carrier_ == nullptr) return "";
  carrier_->WaitEnd(kEndSoon);
  carrier_->ReadErrors();
  const std::string text = carrier_->ErrorTail();
  return text.empty() ? "" : " (" + text + ")";
}

void ChannelProcess::ReadErrors() {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t n = read(errors_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    error_text_.Append({buffer.data(), static_cast<size_t>(n)});
  }
}

std::optional<int> ChannelProcess::WaitEnd(std::chrono::milliseconds limit) {
  absl::MutexLock lock(&mutex_);
  const auto ended = [this] {
    mutex_.AssertHeld();
    return wait_status_.has_value();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ended), absl::FromChrono(limit));
  return wait_status_;
}

}  // namespace muster::nodes::ssh
