#include "controller/nodes/ssh/agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "common/status.h"

namespace muster::nodes::ssh {
namespace {

constexpr size_t kBiggestMessage = 256 << 10;
constexpr size_t kLengthBytes = 4;
constexpr std::chrono::milliseconds kFullQueuePause{10};

std::string FormatLength(size_t length) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

// False: there are not so many bytes.
bool TakeLength(std::string_view& bytes, size_t& length) {
  if (bytes.size() < kLengthBytes) return false;
  length = 0;
  for (const char c : bytes.substr(0, kLengthBytes)) {
    length = length << 8 | static_cast<unsigned char>(c);
  }
  bytes.remove_prefix(kLengthBytes);
  return true;
}

bool TakeString(std::string_view& bytes, std::string& text) {
  size_t length = 0;
  if (!TakeLength(bytes, length) || length > bytes.size()) return false;
  text = std::string(bytes.substr(0, length));
  bytes.remove_prefix(length);
  return true;
}

absl::StatusOr<std::string> ReceiveBytes(int fd, size_t count, const Limits& limits) {
  std::string bytes(count, '\0');
  size_t have = 0;
  while (have < count) {
    const ssize_t n = recv(fd, bytes.data() + have, count - have, MSG_DONTWAIT);
    if (n == 0) return absl::UnavailableError("it closed the connection");
    if (n > 0) {
      have += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      MUSTER_RETURN_IF_ERROR(WaitFd(fd, POLLIN, limits));
    } else if (errno != EINTR) {
      return PosixError("receive");
    }
  }
  return bytes;
}

}  // namespace

std::string AgentKey::Type() const {
  std::string_view rest = blob;
  std::string type;
  return TakeString(rest, type) ? type : "";
}

absl::StatusOr<std::vector<AgentKey>> ParseIdentities(std::string_view answer) {
  const absl::Status bad = absl::InvalidArgumentError("its answer is no list of keys");
  if (answer.empty() || answer.front() != kIdentitiesAnswer) return bad;
  answer.remove_prefix(1);
  size_t count = 0;
  if (!TakeLength(answer, count) || count > answer.size()) return bad;
  std::vector<AgentKey> keys(count);
  for (AgentKey& key : keys) {
    if (!TakeString(answer, key.blob) || !TakeString(answer, key.comment)) return bad;
  }
  return keys;
}

std::string FormatIdentities(const std::vector<AgentKey>& keys) {
  std::string body(1, kIdentitiesAnswer);
  body += FormatLength(keys.size());
  for (const AgentKey& key : keys) {
    body += FormatLength(key.blob.size()) + key.blob;
    body += FormatLength(key.comment.size()) + key.comment;
  }
  return body;
}

absl::Status SendMessage(int fd, std::string_view body, const Limits& limits) {
  const std::string message = FormatLength(body.size()) + std::string(body);
  size_t sent = 0;
  while (sent < message.size()) {
    const ssize_t n =
        send(fd, message.data() + sent, message.size() - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n >= 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      MUSTER_RETURN_IF_ERROR(WaitFd(fd, POLLOUT, limits));
    } else if (errno != EINTR) {
      return PosixError("send");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveMessage(int fd, const Limits& limits) {
  MUSTER_ASSIGN_OR_RETURN(const std::string head, ReceiveBytes(fd, kLengthBytes, limits));
  std::string_view rest = head;
  size_t length = 0;
  TakeLength(rest, length);
  if (length == 0 || length > kBiggestMessage) {
    return absl::InvalidArgumentError("a message of " + std::to_string(length) + " bytes");
  }
  return ReceiveBytes(fd, length, limits);
}

absl::StatusOr<Agent> Agent::Connect(const std::string& socket_path, const Limits& limits) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError("the path of its socket is too long");
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return PosixError("socket");
  while (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    if (errno != EAGAIN) return PosixError("connect");
    if (limits.stop->WaitFor(kFullQueuePause)) return absl::CancelledError("closed");
    if (limits.Left().count() == 0) {
      return absl::DeadlineExceededError("its queue was full for " + limits.Total());
    }
  }
  return Agent(std::move(fd));
}

absl::StatusOr<std::vector<AgentKey>> Agent::Identities(const Limits& limits) {
  MUSTER_ASSIGN_OR_RETURN(const std::string answer,
                          Ask(std::string_view(&kRequestIdentities, 1), limits));
  return ParseIdentities(answer);
}

void Agent::Shutdown() const {
  shutdown(fd_.get(), SHUT_RDWR);
}

absl::StatusOr<std::string> Agent::Ask(std::string_view body, const Limits& limits) {
  MUSTER_RETURN_IF_ERROR(SendMessage(fd_.get(), body, limits));
  return ReceiveMessage(fd_.get(), limits);
}

}  // namespace muster::nodes::ssh
