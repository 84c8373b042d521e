#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "worker/stage/layout.h"

// The versions of trees that a node keeps, and which of them go. Blocking.

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

struct Pruned {
  std::vector<std::string> removed;  // content ids
  std::vector<std::string> kept;     // "0123456789ab: a job uses it"
};

// Removes all but the `keep` newest versions. Those in use by a job or by a link outside stay, and
// so do those with files that are not of the tree: somebody's output. Leftovers of interrupted
// transfers go when nobody works on them: of `all_partial`, else of those a day old.
Pruned Prune(const std::string& state_dir, uint32_t keep, const std::set<std::string>& in_use,
             bool all_partial);

// Makes the symbolic link `path` lead to the version, atomically, in place of an earlier one of
// ours. AlreadyExists when something else stands there.
absl::Status SwitchLink(const Layout& layout, const std::string& path);

// Why the staged tree can't be used as it is, by the sizes, modes and targets of all its entries;
// OK: it can.
absl::Status QuickCheck(const std::string& state_dir, const std::string& content_id);

}  // namespace muster::stage
