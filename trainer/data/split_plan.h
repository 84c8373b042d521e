#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/dataset.h"
#include "trainer/data/index_budget.h"
#include "trainer/data/index_cache.h"
#include "trainer/data/part.h"

namespace muster::data {

// One split on its way from paths to samples: parts first, then what an index would cost, then
// the sources, then their blend. The steps are called in this order; one thread but for BuildPart.
class SplitPlan {
 public:
  // `shares`: the --split text that cuts the files; nothing: the files are this split's alone.
  // Throws as PartPlanner::Plan does, and for weights without a number of samples.
  SplitPlan(const DataConfig& config, const BlendList& list, std::optional<std::string> shares,
            Split split, std::optional<int64_t> samples, PartPlanner& planner);

  // False: this split holds nothing, and no other step may be called.
  bool exists() const { return !parts_.empty(); }

  Split split() const { return split_; }
  size_t num_parts() const { return parts_.size(); }
  IndexCost Cost() const;
  // Makes the source of one part; different parts on any threads. `threads`: to use for this one.
  void BuildPart(size_t i, int threads);
  // The samples of the split, from all parts.
  std::unique_ptr<SampleSource> Finish();

 private:
  std::unique_ptr<SampleSource> Source(const Part& part, int threads) const;
  GptIndex Index(const Part& part, int threads) const;
  bool UsesIndex() const {
    return config_.order == DataOrder::kShuffled && config_.index_order == IndexOrder::kMegatron;
  }
  int64_t SizeOf(size_t i) const;
  int64_t BlendSize() const;
  std::unique_ptr<SampleSource> Blend();
  // Megatron caches blends only with --data-cache-path.
  bool CachesBlends() const {
    return UsesIndex() && config_.use_index_cache && !config_.data_cache_path.empty();
  }
  CacheKey KeyOfBlend(const std::vector<int64_t>& sizes, const std::vector<double>& weights,
                      bool exhaustive) const;
  std::unique_ptr<SampleSource> StreamedBlendOf(const std::vector<double>& weights);

  const DataConfig& config_;
  std::optional<std::string> shares_;
  Split split_;
  std::optional<int64_t> samples_;
  bool blended_ = false;
  std::optional<std::vector<double>> weights_;  // as given, adding up to 1
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<SampleSource>> sources_;
};

}  // namespace muster::data
