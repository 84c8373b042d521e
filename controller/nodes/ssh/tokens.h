#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <string_view>

#include "controller/nodes/ssh/config_source.h"

// The %-tokens, ${VARIABLES} and ~ of ssh_config(5). Pure.

namespace muster::nodes::ssh {

// What each token stands for; %% is always known.
using Tokens = std::map<char, std::string>;

// InvalidArgument: a token that is not in `tokens`.
absl::StatusOr<std::string> ExpandTokens(std::string_view text, const Tokens& tokens);

// ${NAME} as well. InvalidArgument: no such variable, no '}'.
absl::StatusOr<std::string> ExpandVariables(std::string_view text, const ConfigSource& source);

// A leading ~ or ~/; ~user is an error here.
absl::StatusOr<std::string> ExpandHome(std::string_view path, const std::string& home);

// The file that an IdentityFile, UserKnownHostsFile or IdentityAgent means: ~, then tokens and
// variables.
absl::StatusOr<std::string> ExpandPath(std::string_view path, const Tokens& tokens,
                                       const ConfigSource& source);

// The tokens that most keywords know, for a connection of `user` to `host`, which the user called
// `original`; `alias` is HostKeyAlias or `original`.
struct TokenValues {
  std::string original;
  std::string host;
  std::string alias;
  std::string user;
  int port = 22;
};
Tokens MakeTokens(const TokenValues& values, const LocalUser& local);

}  // namespace muster::nodes::ssh
