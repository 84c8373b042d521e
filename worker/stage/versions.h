#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "worker/stage/layout.h"

// The versions of trees that a node keeps. Blocking.

namespace muster::stage {

struct Version {
  std::string content_id;
  std::string folder;
  int64_t used_ns = 0;  // when it was last staged
};

// Newest first.
std::vector<Version> ListVersions(const std::string& state_dir);

// It was staged again: it is the newest now.
void Touch(const Layout& layout);

// While the descriptor is open, and in whatever process, the version is not removed. NotFound: it
// is not here, or is being removed just now. At once.
absl::StatusOr<UniqueFd> KeepVersion(const std::string& state_dir, const std::string& content_id);

// Whether SwitchLink can make a link there, as far as can be told without changing anything.
absl::Status CheckLink(const std::string& path);

// Makes the symbolic link `path` lead to the version, atomically, in place of an earlier one of
// ours. AlreadyExists when something else stands there.
absl::Status SwitchLink(const Layout& layout, const std::string& path);

// The link outside that leads to the version; "" when there is none.
std::string LinkTo(const Layout& layout);

// Why the staged tree can't be used as it is, by the sizes, modes and targets of all its entries;
// OK: it can.
absl::Status QuickCheck(const std::string& state_dir, const std::string& content_id);

}  // namespace muster::stage
