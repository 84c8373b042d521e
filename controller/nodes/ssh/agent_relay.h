#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <memory>
#include <thread>

#include "common/unique_fd.h"
#include "controller/nodes/limits.h"
#include "controller/nodes/ssh/agent.h"

namespace muster::nodes::ssh {

// What libssh takes for the user's agent: it has just the one key that is tried next, and has the
// real agent sign. So that keys are offered in our order, and an agent that does not answer holds
// up the library no longer than the limits. Its thread ends with it.
class AgentRelay {
 public:
  // `limits` are for all answers of the agent together.
  static absl::StatusOr<std::unique_ptr<AgentRelay>> Start(Agent agent, const Limits& limits);
  ~AgentRelay();

  // libssh's end; given away once.
  UniqueFd TakeSocket() { return std::move(theirs_); }
  void Offer(AgentKey key) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  AgentRelay(Agent agent, UniqueFd ours, UniqueFd theirs, const Limits& limits);
  void Run();

  Agent agent_;  // the thread's
  UniqueFd ours_;
  UniqueFd theirs_;
  const Limits limits_;
  absl::Mutex mutex_;
  AgentKey key_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace muster::nodes::ssh
