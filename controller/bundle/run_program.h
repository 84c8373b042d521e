#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::bundle {

// Runs a program to its end and gives what it wrote to stdout. An error when there is none (with
// the Debian package to install), or when it fails: then with what it wrote to stderr. Blocking.
absl::StatusOr<std::string> RunProgram(
    const std::vector<std::string>& words,
    const std::optional<std::vector<std::string>>& environment = std::nullopt);

}  // namespace muster::bundle
