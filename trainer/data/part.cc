#include "trainer/data/part.h"

#include <fmt/format.h>

#include <limits>

#include "trainer/data/data_error.h"
#include "trainer/data/mock_store.h"
#include "trainer/data/parallel_for.h"

namespace muster::data {
namespace {

// What helps when a split has too little.
const char* WaysAround(Split split) {
  if (split == Split::kTrain) return "give it a larger share of --split, or more data";
  if (split == Split::kValid) {
    return "give it a larger share of --split, or --eval-iters 0 for no evaluation";
  }
  return "give it a larger share of --split, or none (such as --split 99,1,0) for no test";
}

}  // namespace

void PartPlanner::Open(Part& part) {
  if (part.prefix.empty()) {
    if (mock_ == nullptr) mock_ = std::make_shared<MockStore>(config_.vocab_size, config_.eod);
    part.store = mock_;
    return;
  }
  std::shared_ptr<const IndexedDataset>& opened = opened_[part.prefix];
  if (opened == nullptr) {
    opened = std::make_shared<IndexedDataset>(part.prefix, config_.mmap_bin_files);
  }
  part.indexed = opened;
  part.store = opened;
}

std::optional<Part> PartPlanner::Plan(const std::string& prefix, const std::string& shares,
                                      Split split, std::optional<int64_t> samples) {
  Part part;
  part.prefix = prefix;
  part.split = split;
  part.samples = samples;
  Open(part);
  const bool by_document = config_.order == DataOrder::kDocument;
  if (by_document && part.indexed == nullptr) {
    throw DataError("--data-order document needs --data-path");
  }
  const int64_t elements =
      by_document ? part.indexed->num_documents() : part.store->lengths().size();
  const auto range = SplitRanges(shares, elements)[static_cast<size_t>(split)];
  if (!range) return std::nullopt;
  if (range->size() == 0) {
    if (!samples) return std::nullopt;
    throw DataError(fmt::format("{}: the {} split is empty (--split '{}' of {} documents): {}",
                                part.Name(), NameOf(split), shares, elements, WaysAround(split)));
  }
  part.range = *range;
  if (config_.order == DataOrder::kShuffled && config_.index_order == IndexOrder::kMegatron) {
    PlanGptIndex(part);
    if (part.shape.num_samples == 0) {
      if (!samples) return std::nullopt;
      throw DataError(fmt::format("{}: the {} split holds {} tokens; one sample needs {}",
                                  part.Name(), NameOf(split), part.shape.tokens_per_epoch,
                                  config_.seq_length + 1) +
                      ": " + WaysAround(split));
    }
  }
  return part;
}

void PartPlanner::PlanGptIndex(Part& part) const {
  GptIndexParams& params = part.params;
  params.first_sequence = part.range.begin;
  params.end_sequence = part.range.end;
  params.num_samples = part.samples;
  params.seq_length = config_.seq_length;
  params.seed = config_.seed;
  params.drop_last_partial_sequence =
      part.split != Split::kValid || config_.drop_last_partial_validation_sequence;
  params.extra_token = config_.add_extra_token_to_sequence;
  if (part.range.end > std::numeric_limits<int32_t>::max()) {
    throw DataError(part.Name() +
                    " has more than 2^31 sequences, which Megatron's order numbers in 31 bits: use "
                    "--index-order streamed");
  }
  const int64_t tokens =
      CountTokens(*part.store, part.range.begin, part.range.end, HardwareThreads());
  if (tokens < 1) {
    throw DataError(fmt::format("{}: the {} split holds no tokens: {}", part.Name(),
                                NameOf(part.split), WaysAround(part.split)));
  }
  part.shape = ShapeOf(tokens, params);
}

SampleRules RulesOf(const DataConfig& config) {
  return {.vocab_size = config.vocab_size,
          .eod = config.eod,
          .pad = config.pad,
          .eod_mask_loss = config.eod_mask_loss,
          .reset_position_ids = config.reset_position_ids,
          .reset_attention_mask = config.reset_attention_mask,
          .inter_document_masking = config.inter_document_masking};
}

}  // namespace muster::data
