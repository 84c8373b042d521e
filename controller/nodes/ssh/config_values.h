#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The values of ssh_config(5). Pure.

namespace muster::nodes::ssh {

// "90", "1m30s", "2h". Nothing: not a time.
std::optional<int> ParseTime(std::string_view text);

// 1 to 65535. Names of services ("ssh") are not known here.
std::optional<uint16_t> ParsePort(std::string_view text);

// yes, true, no, false; without regard to case.
std::optional<bool> ParseFlag(std::string_view text);

// [USER@]HOST[:PORT] or ssh://[USER@]HOST[:PORT]; an IPv6 address with a port needs brackets.
struct HostSpec {
  std::string host;
  std::optional<std::string> user;
  std::optional<uint16_t> port;
};
std::optional<HostSpec> ParseHostSpec(std::string_view text);

// The hops of ProxyJump in their order, the one nearest to us first; none for "none".
absl::StatusOr<std::vector<HostSpec>> ParseJumps(std::string_view text);

// Whether ssh would take such a name for a host or a user: nothing that a shell or an option parser
// could misread.
bool IsSaneHost(std::string_view host);
bool IsSaneUser(std::string_view user);

}  // namespace muster::nodes::ssh
