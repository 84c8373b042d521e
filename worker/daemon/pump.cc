#include "worker/daemon/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <optional>

#include "common/status.h"

namespace muster::worker {
namespace {

using std::chrono::steady_clock;

constexpr size_t kBufferSize = size_t{64} * 1024;

absl::Status MakeNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return PosixError("O_NONBLOCK");
  return absl::OkStatus();
}

bool WouldBlock() {
  return errno == EAGAIN || errno == EINTR;
}

// One direction: read when empty, write until empty.
class Lane {
 public:
  Lane(int from, int to) : from_(from), to_(to) {}

  bool pending() const { return begin_ < end_; }
  bool read_ended() const { return read_ended_; }
  bool write_failed() const { return write_failed_; }
  bool wants_read() const { return !pending() && !read_ended_; }
  bool wants_write() const { return pending() && !write_failed_; }

  void Read() {
    const ssize_t n = read(from_, buffer_.data(), buffer_.size());
    if (n < 0 && WouldBlock()) return;
    begin_ = 0;
    end_ = n > 0 ? static_cast<size_t>(n) : 0;
    read_ended_ = n <= 0;
    Write();  // usually possible at once
  }
  void Write() {
    while (wants_write()) {
      const ssize_t n = write(to_, buffer_.data() + begin_, end_ - begin_);
      if (n < 0 && WouldBlock()) return;
      if (n <= 0) {
        write_failed_ = true;
        return;
      }
      begin_ += static_cast<size_t>(n);
    }
  }

 private:
  const int from_;
  const int to_;
  std::array<char, kBufferSize> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool read_ended_ = false;
  bool write_failed_ = false;
};

int Remaining(const std::optional<steady_clock::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - steady_clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

}  // namespace

absl::Status Pump(int in, int out, int socket, std::chrono::milliseconds flush_limit) {
  for (const int fd : {in, out, socket}) MUSTER_RETURN_IF_ERROR(MakeNonBlocking(fd));
  const auto down = std::make_unique<Lane>(in, socket);
  const auto up = std::make_unique<Lane>(socket, out);
  constexpr int kGone = POLLRDHUP | POLLHUP | POLLERR;
  bool daemon_gone = false;
  std::optional<steady_clock::time_point> deadline;  // once the daemon has gone
  while (true) {
    if (down->read_ended() || up->write_failed()) return absl::OkStatus();
    daemon_gone = daemon_gone || up->read_ended() || down->write_failed();
    if (daemon_gone && !deadline) deadline = steady_clock::now() + flush_limit;
    if ((up->read_ended() && !up->pending()) || Remaining(deadline) == 0) {
      return absl::UnavailableError("musterd closed the connection");
    }
    // A side that nothing is to be read from is still watched for its end.
    const int of_caller = down->wants_read() ? POLLIN : POLLRDHUP;
    const int of_daemon = (down->wants_write() ? POLLOUT : 0) | (up->wants_read() ? POLLIN : 0) |
                          (daemon_gone ? 0 : POLLRDHUP);
    std::array<pollfd, 3> fds = {
        pollfd{.fd = in, .events = static_cast<short>(of_caller), .revents = 0},
        pollfd{.fd = of_daemon == 0 ? -1 : socket,
               .events = static_cast<short>(of_daemon),
               .revents = 0},
        pollfd{.fd = up->wants_write() ? out : -1, .events = POLLOUT, .revents = 0}};
    if (poll(fds.data(), fds.size(), Remaining(deadline)) < 0 && errno != EINTR) {
      return PosixError("poll");
    }
    if (fds[0].revents != 0 && !down->wants_read()) return absl::OkStatus();
    if (fds[0].revents != 0) down->Read();
    if ((fds[1].revents & kGone) != 0) daemon_gone = true;
    if (fds[1].revents != 0 && down->wants_write()) down->Write();
    if (fds[1].revents != 0 && up->wants_read()) up->Read();
    if (fds[2].revents != 0) up->Write();
  }
}

}  // namespace muster::worker
