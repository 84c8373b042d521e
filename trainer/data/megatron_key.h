#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/index_cache.h"
#include "trainer/data/part.h"

// The keys of Megatron's index caches. Pure.

namespace muster::data {

// Megatron's description of a GPTDataset: JSON of what its index depends on. `shares`: the --split
// text, nothing when the split has data of its own.
std::string DescriptionOf(const DataConfig& config, const Part& part,
                          const std::optional<std::string>& shares);

// Where the index of this part is cached; `description` as above.
CacheKey PartKey(const DataConfig& config, const Part& part, std::string description);

// Where the index of a blend of these parts is cached. `weights` and `size` in JSON: the weights
// that the blend is dealt by and its size, or the parts' sizes and null for one epoch of each.
CacheKey BlendKey(const DataConfig& config, Split split, const std::vector<std::string>& parts,
                  const std::vector<std::string>& weights, const std::string& size);

}  // namespace muster::data
