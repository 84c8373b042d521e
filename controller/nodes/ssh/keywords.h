#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The keywords of ssh_config(5) and what they mean to this client.

namespace muster::nodes::ssh {

enum class Keyword {
  kHost,
  kMatch,
  kInclude,
  kIgnoreUnknown,
  // Where, as whom and by which keys.
  kHostName,
  kUser,
  kPort,
  kAddressFamily,
  kConnectTimeout,
  kIdentityFile,
  kIdentitiesOnly,
  kIdentityAgent,
  kPubkeyAuthentication,
  kPreferredAuthentications,
  kProxyCommand,
  kProxyJump,
  kUserKnownHostsFile,
  kGlobalKnownHostsFile,
  kStrictHostKeyChecking,
  kHostKeyAlias,
  kHashKnownHosts,
  // Another way to log in, which this client lacks.
  kUnusedLogin,
  // Changes where we come out or whom we trust there; followed only by OpenSSH.
  kCanonicalizeHostname,
  kProxyUseFdpass,
  kForeign,
  // Of no consequence to a connection that carries one command and forwards nothing.
  kIgnored,
};

// `name` in lower case.
std::optional<Keyword> FindKeyword(std::string_view name);

// All names, for suggestions.
const std::vector<std::string>& KeywordNames();

}  // namespace muster::nodes::ssh
