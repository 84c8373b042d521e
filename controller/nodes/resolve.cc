#include "controller/nodes/resolve.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <tuple>
#include <utility>

#include "common/status.h"
#include "common/unique_fd.h"

namespace muster::nodes {
namespace {

using Key = std::tuple<std::string, uint16_t, int>;  // host, port, family

struct Answer {
  int error = 0;
  int system_error = 0;
  std::vector<SocketAddress> addresses;
};

// A question to the system's resolver, which can't be interrupted: it is asked on a thread of its
// own, which outlives whoever no longer waits for it.
struct Question {
  Answer answer;  // written by the thread before `done`
  std::atomic<bool> done{false};
  UniqueFd ready{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // readable for good once done
};

Answer Ask(const Key& key, int flags) {
  const auto& [host, port, family] = key;
  addrinfo hints{};
  hints.ai_family = family;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  Answer answer;
  answer.error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  answer.system_error = errno;
  for (const addrinfo* entry = answer.error == 0 ? list : nullptr; entry != nullptr;
       entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    answer.addresses.push_back(address);
  }
  if (list != nullptr) freeaddrinfo(list);
  return answer;
}

// The questions that wait for their answers.
class Pending {
 public:
  static Pending& Get() {
    static Pending* const pending = new Pending;  // threads may outlive main
    return *pending;
  }

  std::shared_ptr<Question> Join(const Key& key) {
    absl::MutexLock lock(&mutex_);
    std::shared_ptr<Question>& question = questions_[key];
    if (question == nullptr) {
      question = std::make_shared<Question>();
      std::thread([this, key, asked = question] { Run(key, *asked); }).detach();
    }
    return question;
  }

 private:
  void Run(const Key& key, Question& question) {
    question.answer = Ask(key, 0);
    {
      // Whoever comes from now on asks anew.
      absl::MutexLock lock(&mutex_);
      questions_.erase(key);
    }
    question.done.store(true);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(question.ready.get(), &one, sizeof one);
  }

  absl::Mutex mutex_;
  std::map<Key, std::shared_ptr<Question>> questions_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::vector<SocketAddress>> Take(const std::string& host, const Answer& answer) {
  if (answer.error == 0) return answer.addresses;
  const std::string text =
      "name " + host + ": " +
      (answer.error == EAI_SYSTEM ? strerror(answer.system_error) : gai_strerror(answer.error));
  if (answer.error == EAI_NONAME || answer.error == EAI_NODATA || answer.error == EAI_ADDRFAMILY) {
    return absl::FailedPreconditionError(text);
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
                                                       int family, const Limits& limits) {
  const Key key(host, port, family);
  if (const Answer numeric = Ask(key, AI_NUMERICHOST); numeric.error == 0) return numeric.addresses;
  const std::shared_ptr<Question> question = Pending::Get().Join(key);
  while (!question->done.load()) {
    const absl::Status status = WaitFd(question->ready.get(), POLLIN, limits);
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          "name " + host + ": the name server gave no answer within " + limits.Total());
    }
    MUSTER_RETURN_IF_ERROR(status);
  }
  return Take(host, question->answer);
}

}  // namespace muster::nodes
