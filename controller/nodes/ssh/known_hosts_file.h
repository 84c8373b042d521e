#pragma once

#include <absl/status/statusor.h>

#include <string>

// known_hosts on the disk. Any thread.

namespace muster::nodes::ssh {

// "" when it is not there.
absl::StatusOr<std::string> ReadKnownHosts(const std::string& path);

// Adds a whole line at the end; makes the file (0600) and its folder (0700) when missing. Lines of
// several writers, ssh among them, do not mix.
absl::Status AppendKnownHosts(const std::string& path, const std::string& line);

}  // namespace muster::nodes::ssh
