#include "trainer/data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "trainer/data/blend.h"
#include "trainer/data/blended_source.h"
#include "trainer/data/data_error.h"
#include "trainer/data/gpt_index.h"
#include "trainer/data/gpt_source.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/mock_store.h"
#include "trainer/data/ordered_source.h"
#include "trainer/data/split.h"

namespace muster::data {
namespace {

constexpr int kTrain = 0;
constexpr int kValid = 1;
constexpr int kTest = 2;
constexpr const char* kSplitNames[] = {"train", "valid", "test"};
constexpr char kWhole[] = "1";
constexpr char kMockSplit[] = "1,1,1";

using Samples = std::optional<int64_t>;
using Sources = std::vector<std::unique_ptr<SampleSource>>;

class Builder {
 public:
  explicit Builder(const DataConfig& config) : config_(config) {
    if (config.seq_length < 1) throw DataError("--seq-length must be at least 1");
    if (config.eod_mask_loss && config.eod < 0) {
      throw DataError("--eod-mask-loss needs an end-of-document token");
    }
  }

  // The samples of one split (number `which` of `split_text`) of one data set, or null when the
  // split is empty.
  std::unique_ptr<SampleSource> Single(const std::string& prefix, const std::string& split_text,
                                       int which, Samples samples) const;
  // The same over one or several data sets.
  std::unique_ptr<SampleSource> Blend(const BlendList& list, const std::string& split_text,
                                      int which, Samples samples) const;

 private:
  std::unique_ptr<SampleSource> Shuffled(std::shared_ptr<const SequenceStore> store,
                                         const std::string& name, Range range, int which,
                                         Samples samples) const;

  LossRules rules() const {
    return {config_.vocab_size, config_.eod, config_.pad, config_.eod_mask_loss};
  }

  const DataConfig& config_;
};

std::unique_ptr<SampleSource> Builder::Single(const std::string& prefix,
                                              const std::string& split_text, int which,
                                              Samples samples) const {
  std::shared_ptr<const IndexedDataset> indexed;
  std::shared_ptr<const SequenceStore> store;
  if (config_.mock_data) {
    store = std::make_shared<MockStore>(config_.vocab_size, config_.eod);
  } else {
    indexed = std::make_shared<IndexedDataset>(prefix, config_.mmap_bin_files);
    store = indexed;
  }
  const bool by_document = config_.order == DataOrder::kDocument;
  if (by_document && indexed == nullptr) {
    throw DataError("--data-order document needs --data-path");
  }
  const int64_t elements = by_document ? indexed->num_documents() : store->lengths().size();
  const auto range = SplitRanges(split_text, elements)[which];
  if (!range) return nullptr;
  const std::string name = config_.mock_data ? "mock data" : prefix;
  if (range->size() == 0) {
    if (!samples) return nullptr;
    throw DataError(fmt::format("{}: the {} split is empty (--split '{}' of {} documents)", name,
                                kSplitNames[which], split_text, elements));
  }
  switch (config_.order) {
    case DataOrder::kSequential:
      return std::make_unique<SequentialSource>(store, *range, config_.seq_length,
                                                samples.value_or(-1), rules());
    case DataOrder::kDocument:
      return std::make_unique<DocumentSource>(indexed, *range, config_.seq_length,
                                              samples.value_or(-1), rules());
    case DataOrder::kShuffled:
      break;
  }
  return Shuffled(store, name, *range, which, samples);
}

std::unique_ptr<SampleSource> Builder::Shuffled(std::shared_ptr<const SequenceStore> store,
                                                const std::string& name, Range range, int which,
                                                Samples samples) const {
  GptIndexParams params;
  params.first_sequence = range.begin;
  params.end_sequence = range.end;
  params.num_samples = samples;
  params.seq_length = config_.seq_length;
  params.seed = config_.seed;
  params.drop_last_partial_sequence =
      which != kValid || config_.drop_last_partial_validation_sequence;
  params.extra_token = config_.add_extra_token_to_sequence;
  if (range.end > std::numeric_limits<int32_t>::max()) {
    throw DataError(name +
                    " has more than 2^31 sequences; this data order numbers them in 31 bits");
  }
  const int64_t tokens = CountTokens(store->lengths(), range.begin, range.end);
  if (tokens < 1) {
    throw DataError(fmt::format("{}: the {} split holds no tokens", name, kSplitNames[which]));
  }
  const int64_t bytes = GptIndexBytes(tokens, params);
  if (bytes > config_.index_memory) {
    throw DataError(fmt::format(
        "{}: the shuffled order of the {} split would take {:.1f} GiB of memory in each process "
        "(limit {:.1f}); ask for fewer samples, or use --data-order sequential",
        name, kSplitNames[which], static_cast<double>(bytes) / (1 << 30),
        static_cast<double>(config_.index_memory) / (1 << 30)));
  }
  GptIndex index = BuildGptIndex(store->lengths(), tokens, params);
  if (index.num_samples() == 0) {
    if (!samples) return nullptr;
    throw DataError(fmt::format("{}: the {} split holds {} tokens; one sample needs {}", name,
                                kSplitNames[which], tokens, config_.seq_length + 1));
  }
  return std::make_unique<GptSource>(std::move(store), std::move(index), config_.seq_length,
                                     config_.add_extra_token_to_sequence, rules());
}

std::unique_ptr<SampleSource> Builder::Blend(const BlendList& list, const std::string& split_text,
                                             int which, Samples samples) const {
  if (list.prefixes.size() == 1) return Single(list.prefixes[0], split_text, which, samples);
  if (list.prefixes.size() > std::numeric_limits<int16_t>::max()) {
    throw DataError("a blend takes at most 32767 data sets");
  }
  if (list.weights && !samples) {
    throw DataError("a blend with weights needs a number of samples");
  }
  std::vector<double> weights;
  std::vector<int64_t> build_sizes;
  int64_t size = 0;
  if (list.weights) {
    weights = Normalize(*list.weights);
    for (const int64_t part : SizesOfParts(weights, *samples, 0.0)) size += part;
    build_sizes = SizesOfParts(weights, *samples, config_.mid_level_dataset_surplus);
  }
  Sources parts;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < list.prefixes.size(); ++i) {
    const Samples wanted = list.weights ? Samples(build_sizes[i]) : std::nullopt;
    parts.push_back(Single(list.prefixes[i], split_text, which, wanted));
    if (parts.back() == nullptr) return nullptr;
    sizes.push_back(parts.back()->size());
  }
  if (!list.weights) {  // one epoch of each, in proportion to their lengths
    if (!samples) {
      return std::make_unique<BlendedSource>(std::move(parts), BuildExhaustiveBlend(sizes));
    }
    weights = Normalize(std::vector<double>(sizes.begin(), sizes.end()));
    int64_t total = 0;
    for (const int64_t part : sizes) total += part;
    size = std::min(*samples, total);
  }
  // Megatron normalises twice.
  return std::make_unique<BlendedSource>(std::move(parts), BuildBlend(Normalize(weights), size));
}

}  // namespace

Datasets BuildDatasets(const DataConfig& config) {
  const Builder builder(config);
  const std::array<Samples, 3> samples = {config.train_samples, config.valid_samples,
                                          config.test_samples};
  const std::array<const std::vector<std::string>*, 3> per_split = {
      &config.train_data_path, &config.valid_data_path, &config.test_data_path};
  const bool separate = std::any_of(per_split.begin(), per_split.end(),
                                    [](const auto* words) { return !words->empty(); });
  if (!config.mock_data && !separate && config.data_path.empty()) {
    throw DataError("no data: give --data-path PREFIX, --train-data-path PREFIX or --mock-data");
  }
  std::array<std::unique_ptr<SampleSource>, 3> built;
  for (int which : {kTrain, kValid, kTest}) {
    if (samples[which] == 0) continue;
    if (config.mock_data) {
      built[which] = builder.Single("", kMockSplit, which, samples[which]);
    } else if (!separate) {
      built[which] =
          builder.Blend(ParseBlend(config.data_path), config.split, which, samples[which]);
    } else if (!per_split[which]->empty()) {
      // The whole file, but under the rules of its own split.
      static constexpr const char* kOnly[] = {kWhole, "0,1", "0,0,1"};
      built[which] =
          builder.Blend(ParseBlend(*per_split[which]), kOnly[which], which, samples[which]);
    }
  }
  return {std::move(built[kTrain]), std::move(built[kValid]), std::move(built[kTest])};
}

}  // namespace muster::data
