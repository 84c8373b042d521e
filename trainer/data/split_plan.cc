#include "trainer/data/split_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "trainer/data/blended_source.h"
#include "trainer/data/data_error.h"
#include "trainer/data/gpt_source.h"
#include "trainer/data/megatron_key.h"
#include "trainer/data/ordered_source.h"
#include "trainer/data/python_json.h"
#include "trainer/data/streamed_source.h"

namespace muster::data {
namespace {

// A --split text that gives everything to one split.
constexpr const char* kOnly[] = {"1", "0,1", "0,0,1"};

}  // namespace

SplitPlan::SplitPlan(const DataConfig& config, const BlendList& list,
                     std::optional<std::string> shares, Split split, std::optional<int64_t> samples,
                     PartPlanner& planner)
    : config_(config), shares_(std::move(shares)), split_(split), samples_(samples) {
  const size_t count = list.prefixes.size();
  // As in Megatron: one data set with a weight is a blend of one, unless it is its split's alone.
  blended_ = count > 1 || (list.weights && shares_);
  if (count > std::numeric_limits<int16_t>::max()) {
    throw DataError("a blend takes at most 32767 data sets");
  }
  std::vector<std::optional<int64_t>> wanted(count, blended_ ? std::nullopt : samples);
  const bool shuffled = config.order == DataOrder::kShuffled;
  if (blended_ && list.weights && !samples && shuffled) {
    throw DataError("a blend with weights needs a number of samples");
  }
  if (UsesIndex() && samples) CheckIndexSamples(*samples);
  if (blended_ && list.weights && samples) {
    weights_ = Normalize(*list.weights);
    const auto sizes = SizesOfParts(*weights_, *samples, config.mid_level_dataset_surplus);
    std::copy(sizes.begin(), sizes.end(), wanted.begin());
  }
  const std::string text = shares_.value_or(kOnly[static_cast<size_t>(split)]);
  for (size_t i = 0; i < count; ++i) {
    auto part = planner.Plan(list.prefixes[i], text, split, wanted[i]);
    if (!part) {
      parts_.clear();
      return;
    }
    parts_.push_back(std::move(*part));
  }
  sources_.resize(count);
}

int64_t SplitPlan::SizeOf(size_t i) const {
  return UsesIndex() ? parts_[i].shape.num_samples : sources_[i]->size();
}

int64_t SplitPlan::BlendSize() const {
  if (weights_) {
    const std::vector<int64_t> sizes = SizesOfParts(*weights_, *samples_, 0.0);
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  }
  int64_t total = 0;
  for (size_t i = 0; i < parts_.size(); ++i) total += SizeOf(i);
  return std::min(samples_.value_or(total), total);
}

IndexCost SplitPlan::Cost() const {
  IndexCost cost;
  if (!UsesIndex()) return cost;
  for (const Part& part : parts_) {
    cost.documents += part.shape.num_documents;
    cost.samples += part.shape.num_samples;
    cost.bytes += part.shape.bytes();
  }
  if (blended_) {
    cost.blend_draws = BlendSize();
    cost.blend_choices = cost.blend_draws * static_cast<int64_t>(parts_.size());
    cost.bytes += cost.blend_draws * kBlendBytesPerSample;
  }
  return cost;
}

void SplitPlan::BuildPart(size_t i, int threads) {
  sources_[i] = Source(parts_[i], threads);
}

std::unique_ptr<SampleSource> SplitPlan::Source(const Part& part, int threads) const {
  const SampleRules rules = RulesOf(config_);
  const int64_t size = part.samples.value_or(-1);
  if (config_.order == DataOrder::kDocument) {
    return std::make_unique<DocumentSource>(part.indexed, part.range, config_.seq_length, size,
                                            rules);
  }
  if (UsesIndex()) {
    return std::make_unique<GptSource>(part.store, Index(part, threads), config_.seq_length,
                                       config_.add_extra_token_to_sequence, rules);
  }
  try {
    StreamSamples samples(part.store, part.range, config_.seq_length, rules);
    if (config_.order == DataOrder::kSequential) {
      return std::make_unique<SequentialSource>(std::move(samples), size);
    }
    return std::make_unique<StreamedSource>(std::move(samples), size, config_.seed);
  } catch (const DataError& error) {
    throw DataError(part.Name() + ", " + NameOf(split_) + ": " + error.what());
  }
}

GptIndex SplitPlan::Index(const Part& part, int threads) const {
  const auto build = [&] {
    return BuildGptIndex(part.store->lengths(), part.shape, part.params, threads);
  };
  // Mock data has no folder of its own.
  const bool has_folder = !config_.data_cache_path.empty() || !part.prefix.empty();
  if (!config_.use_index_cache || !has_folder) return build();
  return LoadOrBuild(PartKey(config_, part, DescriptionOf(config_, part, shares_)), part.shape,
                     config_.report, build);
}

std::unique_ptr<SampleSource> SplitPlan::Finish() {
  return blended_ ? Blend() : std::move(sources_.front());
}

std::unique_ptr<SampleSource> SplitPlan::Blend() {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < parts_.size(); ++i) sizes.push_back(SizeOf(i));
  std::vector<double> weights =
      weights_ ? *weights_ : Normalize(std::vector<double>(sizes.begin(), sizes.end()));
  if (config_.order == DataOrder::kShuffled && !UsesIndex()) return StreamedBlendOf(weights);

  const bool exhaustive = !weights_ && !samples_;  // one epoch of each
  if (!exhaustive) weights = Normalize(weights);   // Megatron normalises twice
  const int64_t size = BlendSize();
  const auto build = [&] {
    return exhaustive ? BuildExhaustiveBlend(sizes) : BuildBlend(weights, size);
  };
  BlendIndex index = CachesBlends() ? LoadOrBuild(KeyOfBlend(sizes, weights, exhaustive), size,
                                                  config_.report, build)
                                    : build();
  return std::make_unique<BlendedSource>(std::move(sources_), std::move(index));
}

CacheKey SplitPlan::KeyOfBlend(const std::vector<int64_t>& sizes,
                               const std::vector<double>& weights, bool exhaustive) const {
  std::vector<std::string> texts;
  std::vector<std::string> descriptions;
  for (size_t i = 0; i < parts_.size(); ++i) {
    texts.push_back(exhaustive ? python_json::Integer(sizes[i]) : python_json::Float(weights[i]));
    descriptions.push_back(DescriptionOf(config_, parts_[i], shares_));
  }
  return BlendKey(config_, split_, descriptions, texts,
                  exhaustive ? python_json::kNull : python_json::Integer(BlendSize()));
}

std::unique_ptr<SampleSource> SplitPlan::StreamedBlendOf(const std::vector<double>& weights) {
  return std::make_unique<StreamedBlend>(std::move(sources_), PeriodicBlend(weights), BlendSize());
}

}  // namespace muster::data
