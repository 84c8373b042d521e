#include "controller/nodes/ssh/channel_pump.h"

#include <poll.h>
#include <string.h>  // sigabbrev_np
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "controller/nodes/ssh/libssh_handle.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kChunk = 64 << 10;
// libssh may hold a packet that it has read, of which the descriptor says nothing more.
constexpr int kLookAgainMs = 1'000;

int SignalNumber(const char* name) {
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && std::string_view(known) == name) return number;
  }
  return SIGKILL;
}

}  // namespace

ChannelPump::ChannelPump(ssh_session session, ssh_channel channel, int socket, int errors,
                         const StopSignal& stop)
    : session_(session),
      channel_(channel),
      socket_(socket),
      errors_(errors),
      stop_(stop),
      event_(ssh_event_new()) {
  to_socket_.bytes.resize(kChunk);
  from_socket_.bytes.resize(kChunk);
  ssh_event_add_session(event_, session_);
  callbacks_.userdata = this;
  callbacks_.channel_exit_status_function = OnExitStatus;
  callbacks_.channel_exit_signal_function = OnExitSignal;
  ssh_callbacks_init(&callbacks_);
  ssh_set_channel_callbacks(channel_, &callbacks_);
}

ChannelPump::~ChannelPump() {
  ssh_remove_channel_callbacks(channel_, &callbacks_);
  ssh_event_remove_session(event_, session_);
  ssh_event_free(event_);
}

absl::Status ChannelPump::Run() {
  while (!stop_.is_set()) {
    // Reads and writes what the session's connection is ready for.
    if (ssh_event_dopoll(event_, 0) == SSH_ERROR) broken_ = true;
    bool moved = ToSocket();
    moved = ToErrors() || moved;
    moved = FromSocket() || moved;
    if (ssh_is_connected(session_) == 0) broken_ = true;
    if (Finished() || (broken_ && !moved)) break;
    Wait(moved);
  }
  // It may have come with the answer to the request, before we listened; libssh has kept it.
  const int kept = ssh_channel_get_exit_status(channel_);
  if (!wait_status_ && !broken_ && kept >= 0) wait_status_ = W_EXITCODE(kept & 0xff, 0);
  if (!broken_ || stop_.is_set() || wait_status_) return absl::OkStatus();
  return absl::UnavailableError("connection lost: " + LastError(session_));
}

bool ChannelPump::Finished() const {
  if (socket_gone_) return true;
  return channel_eof_ && to_socket_.empty() && ssh_channel_is_closed(channel_) != 0;
}

bool ChannelPump::MayWrite() const {
  return (ssh_get_poll_flags(session_) & SSH_WRITE_PENDING) == 0;
}

bool ChannelPump::ToSocket() {
  bool moved = false;
  if (to_socket_.empty() && !channel_eof_) {
    const int n = ssh_channel_read_nonblocking(channel_, to_socket_.bytes.data(),
                                               static_cast<uint32_t>(kChunk), 0);
    to_socket_.begin = 0;
    to_socket_.end = n > 0 ? static_cast<size_t>(n) : 0;
    moved = n > 0;
    if (n == SSH_ERROR) broken_ = true;
    if (n <= 0 && (n == SSH_EOF || ssh_channel_is_eof(channel_) != 0 ||
                   ssh_channel_is_closed(channel_) != 0)) {
      channel_eof_ = true;
      moved = true;
      shutdown(socket_, SHUT_WR);
    }
  }
  while (!to_socket_.empty()) {
    const ssize_t n = send(socket_, to_socket_.bytes.data() + to_socket_.begin,
                           to_socket_.end - to_socket_.begin, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      socket_gone_ = errno != EAGAIN;
      break;
    }
    to_socket_.begin += static_cast<size_t>(n);
    moved = true;
  }
  return moved;
}

bool ChannelPump::ToErrors() {
  // Always read, and dropped if need be: unread it would take up the window of stdout too.
  std::array<char, 4096> buffer;
  const int n = ssh_channel_read_nonblocking(channel_, buffer.data(), buffer.size(), 1);
  if (n <= 0) return false;
  SayError({buffer.data(), static_cast<size_t>(n)});
  return true;
}

void ChannelPump::SayError(std::string_view text) const {
  [[maybe_unused]] const ssize_t n = write(errors_, text.data(), text.size());
}

bool ChannelPump::FromSocket() {
  bool moved = false;
  if (from_socket_.empty() && !socket_eof_) {
    const ssize_t n = recv(socket_, from_socket_.bytes.data(), kChunk, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
      socket_eof_ = true;
    } else if (n > 0) {
      from_socket_.begin = 0;
      from_socket_.end = static_cast<size_t>(n);
    }
    moved = n >= 0;
    if (socket_eof_ && ssh_channel_is_open(channel_) != 0) ssh_channel_send_eof(channel_);
  }
  while (!from_socket_.empty() && MayWrite() && ssh_channel_is_open(channel_) != 0) {
    const uint32_t room =
        std::min<uint32_t>(ssh_channel_window_size(channel_),
                           static_cast<uint32_t>(from_socket_.end - from_socket_.begin));
    if (room == 0) break;
    const int n = ssh_channel_write(channel_, from_socket_.bytes.data() + from_socket_.begin, room);
    if (n == SSH_ERROR) broken_ = true;
    if (n <= 0) break;
    from_socket_.begin += static_cast<size_t>(n);
    moved = true;
  }
  return moved;
}

void ChannelPump::Wait(bool moved) {
  if (moved) return;
  short socket_events = 0;
  if (from_socket_.empty() && !socket_eof_) socket_events |= POLLIN;
  if (!to_socket_.empty()) socket_events |= POLLOUT;
  std::array<pollfd, 3> fds = {
      pollfd{.fd = ssh_get_fd(session_),
             .events = static_cast<short>(POLLIN | (MayWrite() ? 0 : POLLOUT)),
             .revents = 0},
      // With nothing to wait for there, its hangup would be news again and again.
      pollfd{.fd = socket_events == 0 ? -1 : socket_, .events = socket_events, .revents = 0},
      pollfd{.fd = stop_.fd(), .events = POLLIN, .revents = 0}};
  poll(fds.data(), fds.size(), kLookAgainMs);
}

void ChannelPump::OnExitStatus(ssh_session /*session*/, ssh_channel /*channel*/, int status,
                               void* self) {
  static_cast<ChannelPump*>(self)->wait_status_ = W_EXITCODE(status & 0xff, 0);
}

void ChannelPump::OnExitSignal(ssh_session /*session*/, ssh_channel /*channel*/, const char* signal,
                               int /*core*/, const char* /*message*/, const char* /*language*/,
                               void* self) {
  static_cast<ChannelPump*>(self)->wait_status_ = W_EXITCODE(0, SignalNumber(signal));
}

}  // namespace muster::nodes::ssh
