#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trainer/data/blend.h"
#include "trainer/data/data_report.h"
#include "trainer/data/gpt_index.h"

// Megatron's index caches: the same folder, names and bytes, so that either program finds what the
// other built. docs/formats.md describes the files.

namespace muster::data {

// Names the files of one cache.
struct CacheKey {
  std::string folder;
  std::string class_name;   // "GPTDataset", "MockGPTDataset", "BlendedDataset"
  std::string split;        // "train", "valid", "test"
  std::string description;  // Megatron's JSON; its MD5 is in the names

  // FOLDER/MD5-CLASS-SPLIT-
  std::string Base() const;
};

// Maps the cached index of this shape, or builds it and writes the cache; `build` without a cache
// when the folder can't be used, which is said and no error. One process of a host builds at a
// time, the others wait and then map the same pages. Files that don't fit are named in a warning
// and replaced. Throws what `build` throws.
GptIndex LoadOrBuild(const CacheKey& key, const GptIndexShape& shape, const DataReport& report,
                     const std::function<GptIndex()>& build);

// The same for a blend of `size` samples.
BlendIndex LoadOrBuild(const CacheKey& key, int64_t size, const DataReport& report,
                       const std::function<BlendIndex()>& build);

}  // namespace muster::data
