#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/nodes/ssh/config_source.h"
#include "controller/nodes/ssh/config_values.h"

// What ssh_config(5) says about one host, read as OpenSSH 9 reads it: the first value of a keyword
// wins, keywords that only make ssh more comfortable are passed over, and those that would lead
// elsewhere and that we can't follow are errors with their place.

namespace muster::nodes::ssh {

enum class HostKeyPolicy { kYes, kAsk, kAcceptNew, kNo };
enum class AddressFamily { kAny, kInet, kInet6 };

// As written: tokens, ~ and defaults come later (target.h). Absent: nobody said anything.
struct Config {
  std::optional<std::string> host_name;
  std::optional<std::string> user;
  std::optional<uint16_t> port;
  std::optional<AddressFamily> address_family;
  std::optional<int> connect_timeout;  // seconds

  std::vector<std::string> identity_files;
  std::optional<bool> identities_only;
  std::optional<std::string> identity_agent;
  std::optional<bool> public_key;  // whether keys may be used at all

  // At most one of the two counts, whichever came first.
  std::optional<std::string> proxy_command;
  std::optional<std::vector<HostSpec>> proxy_jump;

  std::vector<std::string> user_known_hosts;
  std::vector<std::string> global_known_hosts;
  std::optional<HostKeyPolicy> host_key_policy;
  std::optional<std::string> host_key_alias;
  std::optional<bool> hash_known_hosts;

  // Ways to log in that this client lacks, for the message when none of its own succeeds:
  // "CertificateFile (/home/u/.ssh/config:7)".
  std::vector<std::string> unused;
};

struct ConfigRequest {
  std::string host;  // as the user calls it
  // Before any file, as on ssh's command line.
  std::optional<std::string> user = std::nullopt;
  std::optional<uint16_t> port = std::nullopt;
  std::vector<std::string> options = {};  // "Keyword=value" or "Keyword value"
  // Instead of ~/.ssh/config and /etc/ssh/ssh_config; "none": no file at all.
  std::optional<std::string> file = std::nullopt;
};

// InvalidArgument: "FILE:LINE: reason". The files are read anew each time.
absl::StatusOr<Config> ReadConfig(const ConfigRequest& request, ConfigSource& source);

}  // namespace muster::nodes::ssh
