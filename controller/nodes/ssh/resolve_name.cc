#include "controller/nodes/ssh/resolve_name.h"

#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::nodes::ssh {
namespace {

// A question to the system's resolver, which can't be interrupted: it is asked on a thread of its
// own, which outlives whoever no longer waits for it.
struct Question {
  std::string host;
  std::string port;
  addrinfo hints{};
  // Written by the thread before `done`.
  int error = 0;
  int system_error = 0;
  std::vector<SocketAddress> addresses;
  std::atomic<bool> done{false};
  UniqueFd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

void Ask(Question& question) {
  addrinfo* list = nullptr;
  question.error =
      getaddrinfo(question.host.c_str(), question.port.c_str(), &question.hints, &list);
  question.system_error = errno;
  for (const addrinfo* entry = question.error == 0 ? list : nullptr; entry != nullptr;
       entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    question.addresses.push_back(address);
  }
  if (list != nullptr) freeaddrinfo(list);
  question.done.store(true);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(question.ready.get(), &one, sizeof one);
}

int FamilyOf(AddressFamily family) {
  switch (family) {
    case AddressFamily::kInet:
      return AF_INET;
    case AddressFamily::kInet6:
      return AF_INET6;
    case AddressFamily::kAny:
      break;
  }
  return AF_UNSPEC;
}

absl::Status Explain(const Question& question) {
  const std::string text = "name " + question.host + ": " +
                           (question.error == EAI_SYSTEM ? strerror(question.system_error)
                                                         : gai_strerror(question.error));
  if (question.error == EAI_NONAME || question.error == EAI_NODATA ||
      question.error == EAI_ADDRFAMILY) {
    return absl::FailedPreconditionError(
        text +
        "; correct the name, or give the host an entry in DNS, /etc/hosts or as HostName in "
        "your ssh configuration");
  }
  return absl::UnavailableError(text);
}

}  // namespace

std::string SocketAddress::Text() const {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, text.data(),
                                text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "?";
}

absl::StatusOr<std::vector<SocketAddress>> ResolveName(const std::string& host, uint16_t port,
                                                       AddressFamily family, const Limits& limits) {
  const auto question = std::make_shared<Question>();
  question->host = host;
  question->port = std::to_string(port);
  question->hints.ai_family = FamilyOf(family);
  question->hints.ai_socktype = SOCK_STREAM;
  question->hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  Ask(*question);
  if (question->error == 0) return std::move(question->addresses);

  question->hints.ai_flags = AI_NUMERICSERV;
  question->done.store(false);
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(question->ready.get(), &count, sizeof count);
  std::thread([question] { Ask(*question); }).detach();
  while (!question->done.load()) {
    const absl::Status status = WaitFd(question->ready.get(), POLLIN, limits);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          "name " + host + ": the name server gave no answer within " + limits.Total());
    }
    MUSTER_RETURN_IF_ERROR(status);
  }
  if (question->error != 0) return Explain(*question);
  return std::move(question->addresses);
}

}  // namespace muster::nodes::ssh
