#include "controller/nodes/resolve.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <arpa/inet.h>
#include <netdb.h>

#include <array>
#include <memory>
#include <optional>
#include <thread>

#include "common/status.h"

namespace muster::nodes {
namespace {

constexpr std::chrono::milliseconds kPoll(10);

absl::StatusOr<std::string> Ask(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    const std::string why = "look up " + host + ": " + gai_strerror(error);
    if (error == EAI_AGAIN || error == EAI_SYSTEM) return absl::UnavailableError(why);
    return absl::FailedPreconditionError(why +
                                         "; correct the name, or give the host's line an addr=IP");
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::array<char, NI_MAXHOST> text;
  if (getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return absl::UnavailableError("look up " + host + ": no numeric address");
  }
  return std::string(text.data());
}

bool IsNumeric(const std::string& host) {
  in6_addr out;
  return inet_pton(AF_INET, host.c_str(), &out) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &out) == 1;
}

// Outlives the asker if the answer is late.
struct Question {
  absl::Mutex mutex;
  std::optional<absl::StatusOr<std::string>> answer ABSL_GUARDED_BY(mutex);
};

}  // namespace

absl::StatusOr<std::string> ResolveAddress(const std::string& host,
                                           std::chrono::milliseconds timeout,
                                           const StopSignal& stop) {
  if (IsNumeric(host)) return host;
  const auto question = std::make_shared<Question>();
  std::thread([question, host] {
    auto answer = Ask(host);
    absl::MutexLock lock(&question->mutex);
    question->answer = std::move(answer);
  }).detach();
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    {
      absl::MutexLock lock(&question->mutex);
      if (question->answer) return *question->answer;
    }
    if (stop.WaitFor(kPoll)) return absl::CancelledError("closed");
  }
  return absl::DeadlineExceededError("look up " + host + ": no answer within " +
                                     std::to_string(timeout.count()) + " ms");
}

}  // namespace muster::nodes
