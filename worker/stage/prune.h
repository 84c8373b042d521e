#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Which versions of trees go. Blocking.

namespace muster::stage {

struct Pruned {
  std::vector<std::string> removed;  // content ids
  std::vector<std::string> kept;     // "0123456789ab: a job uses it"
};

// Removes all but the `keep` newest versions and the one called `spare`. Those that are kept
// (KeepVersion) or that a link outside leads to stay, and so do those with files that are not of
// the tree: somebody's output. Leftovers of interrupted transfers, and versions whose manifest is
// damaged, go when nobody works on them or keeps them: with `all_leftovers`, else those a day old.
Pruned Prune(const std::string& state_dir, uint32_t keep, const std::string& spare,
             bool all_leftovers);

}  // namespace muster::stage
