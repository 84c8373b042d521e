#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "controller/nodes/ssh/agent.h"
#include "controller/nodes/ssh/libssh_handle.h"
#include "controller/nodes/ssh/target.h"

namespace muster::nodes::ssh {

// A key that can be offered to a host.
struct Identity {
  std::string name;  // for people: "key /root/.ssh/id (SHA256:...)", "agent's key work (SHA256:..)"
  std::string blob;  // public part
  KeyPtr key;        // of a file; null: the agent signs
};

struct Identities {
  std::vector<Identity> all;         // in the order in which they are to be tried
  std::vector<std::string> skipped;  // keys that can't be used, each with the reason and the fix
  std::unique_ptr<Agent> agent;      // if one of them needs it
};

// The keys of a target: of its files and of its agent. First those that its configuration names,
// then the agent's others (unless IdentitiesOnly), then those at ssh's usual places. Cancelled.
absl::StatusOr<Identities> CollectIdentities(const Target& target, const Limits& limits);

}  // namespace muster::nodes::ssh
