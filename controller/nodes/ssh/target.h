#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/nodes/ssh/config.h"

namespace muster::nodes::ssh {

// All that it takes to log in on one machine: a configuration with its defaults and expansions.
struct Target {
  std::string original;  // as the user calls it
  std::string host;      // name or address to dial
  uint16_t port = 22;
  std::string user;
  AddressFamily family = AddressFamily::kAny;
  std::optional<std::chrono::seconds> connect_timeout;

  std::vector<std::string> identity_files;  // paths; they need not exist
  bool chosen_identities = false;           // the user named them, they are no defaults
  bool identities_only = false;
  bool public_key = true;
  std::string agent;                // path of its socket, "" for none
  std::vector<std::string> unused;  // see Config

  std::string known_name;       // its name in known_hosts
  std::string known_name_bare;  // another that will do, without the port; "" for none
  std::vector<std::string> user_known_hosts;
  std::vector<std::string> global_known_hosts;
  HostKeyPolicy host_key_policy = HostKeyPolicy::kAsk;
  bool hash_known_hosts = false;

  std::string proxy_command;         // for a shell; "" for none
  std::vector<HostSpec> proxy_jump;  // the hops before it, as its configuration wants them

  // "root@node1", "root@node1:2222", "root@[fd00::1]:2222".
  std::string Describe() const;
};

absl::StatusOr<Target> ResolveTarget(const ConfigRequest& request, ConfigSource& source);

// The way to a host: machines to log in on one through the other, the host itself last. Hops are
// configured by their own entries, as OpenSSH does it. InvalidArgument: loops, too many hops.
absl::StatusOr<std::vector<Target>> ResolveRoute(const ConfigRequest& request,
                                                 ConfigSource& source);

}  // namespace muster::nodes::ssh
