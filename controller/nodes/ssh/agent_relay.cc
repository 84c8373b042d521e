#include "controller/nodes/ssh/agent_relay.h"

#include <sys/socket.h>

#include <string>
#include <utility>

#include "common/log.h"
#include "common/status.h"

namespace muster::nodes::ssh {

absl::StatusOr<std::unique_ptr<AgentRelay>> AgentRelay::Start(Agent agent, const Limits& limits) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    return PosixError("socketpair");
  }
  std::unique_ptr<AgentRelay> relay(
      new AgentRelay(std::move(agent), UniqueFd(pair[0]), UniqueFd(pair[1]), limits));
  relay->thread_ = std::thread([raw = relay.get()] { raw->Run(); });
  return relay;
}

AgentRelay::AgentRelay(Agent agent, UniqueFd ours, UniqueFd theirs, const Limits& limits)
    : agent_(std::move(agent)),
      ours_(std::move(ours)),
      theirs_(std::move(theirs)),
      limits_(limits) {}

AgentRelay::~AgentRelay() {
  // The thread sees the end of whatever it waits for.
  shutdown(ours_.get(), SHUT_RDWR);
  agent_.Shutdown();
  thread_.join();
}

void AgentRelay::Offer(AgentKey key) {
  absl::MutexLock lock(&mutex_);
  key_ = std::move(key);
}

void AgentRelay::Run() {
  while (true) {
    const auto request = ReceiveMessage(ours_.get(), limits_);
    if (!request.ok()) break;
    std::string answer(1, kAgentFailure);
    if (request->front() == kRequestIdentities) {
      absl::MutexLock lock(&mutex_);
      answer = FormatIdentities({key_});
    } else if (request->front() == kSignRequest) {
      auto signed_by_agent = agent_.Ask(*request, limits_);
      if (!signed_by_agent.ok()) {
        log::Debug("ssh agent: " + std::string(signed_by_agent.status().message()));
        break;
      }
      answer = *std::move(signed_by_agent);
    }
    if (!SendMessage(ours_.get(), answer, limits_).ok()) break;
  }
  // libssh, which waits for an answer, sees the end.
  shutdown(ours_.get(), SHUT_RDWR);
}

}  // namespace muster::nodes::ssh
