#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "trainer/data/dataset.h"
#include "trainer/data/gpt_index.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/sample_reader.h"
#include "trainer/data/split.h"

namespace muster::data {

// One data set's share of one split: what will be read, before any index is built.
struct Part {
  std::string prefix;  // empty: mock data
  Split split = Split::kTrain;
  std::shared_ptr<const IndexedDataset> indexed;  // null: mock data
  std::shared_ptr<const SequenceStore> store;
  Range range;                     // in sequences; with --data-order document in documents
  std::optional<int64_t> samples;  // wanted; nothing: one epoch
  // With Megatron's order only.
  GptIndexParams params;
  GptIndexShape shape;

  std::string Name() const { return prefix.empty() ? "mock data" : prefix; }
};

// Opens stores, each file once, and cuts splits. One thread. `config` must outlive it.
class PartPlanner {
 public:
  explicit PartPlanner(const DataConfig& config) : config_(config) {}

  // The part of `split` that `shares` (a --split text) gives to it, or nothing when it is empty.
  // Throws DataError: a missing or damaged file, a split without sequences or tokens of which
  // samples are wanted.
  std::optional<Part> Plan(const std::string& prefix, const std::string& shares, Split split,
                           std::optional<int64_t> samples);

 private:
  void Open(Part& part);
  void PlanGptIndex(Part& part) const;

  const DataConfig& config_;
  std::map<std::string, std::shared_ptr<const IndexedDataset>> opened_;
  std::shared_ptr<const SequenceStore> mock_;
};

SampleRules RulesOf(const DataConfig& config);

}  // namespace muster::data
