#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The first word of a line, or an item of a --host list: [USER@]HOST, where HOST is a name, an
// address or a hostlist.

namespace muster::hostfile {

inline constexpr size_t kMaxHosts = 65536;

struct HostWord {
  std::optional<std::string> user;
  std::vector<std::string> hosts;  // expanded, checked, without brackets; never empty
  // What stands after HOST and a colon: an error in a file, slots in a --host list.
  std::optional<std::string> suffix;
};

// `room` = how many hosts may still be added: checked before a hostlist is expanded.
absl::StatusOr<HostWord> ParseHostWord(std::string_view word, size_t room);

// Equal for two texts that name the same host: names without case and trailing dot, addresses by
// value. `host` is a checked host.
std::string HostKey(std::string_view host);

// A name or an address of the machine itself. `host` is a checked host.
bool IsLoopbackHost(std::string_view host);

}  // namespace muster::hostfile
