#include "trainer/data/gpt_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "trainer/data/data_error.h"
#include "trainer/data/numpy_random.h"

namespace muster::data {
namespace {

// The last epoch is shuffled apart from the others when fewer than this share of it is needed.
constexpr double kSeparateBelow = 0.80;

struct Epochs {
  int64_t count = 1;
  bool separate_last = false;
  int64_t samples_without_last = 0;
};

Epochs PlanEpochs(int64_t tokens_per_epoch, const GptIndexParams& params) {
  Epochs epochs;
  if (!params.num_samples) return epochs;
  const int64_t extra = params.extra_token ? 1 : 0;
  const int64_t wanted = *params.num_samples * params.seq_length + extra;
  epochs.count = std::max<int64_t>(1, (wanted + tokens_per_epoch - 1) / tokens_per_epoch);
  if (epochs.count == 1) return epochs;
  epochs.samples_without_last = ((epochs.count - 1) * tokens_per_epoch - extra) / params.seq_length;
  const int64_t from_last = *params.num_samples - epochs.samples_without_last;
  const int64_t per_epoch = (tokens_per_epoch - extra) / params.seq_length;
  epochs.separate_last =
      from_last < static_cast<int64_t>(kSeparateBelow * static_cast<double>(per_epoch));
  return epochs;
}

int64_t CountSamples(int64_t num_epochs, int64_t tokens_per_epoch, const GptIndexParams& params) {
  const int64_t tokens = num_epochs * tokens_per_epoch - (params.extra_token ? 1 : 0);
  if (params.drop_last_partial_sequence) return tokens / params.seq_length;
  // Single precision on purpose: so does Megatron.
  return static_cast<int64_t>(
      std::ceil(static_cast<float>(tokens) / static_cast<float>(params.seq_length)));
}

bool SampleIndexIsWide(LengthView lengths, int64_t num_documents) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  // Lengths are int32, so only the number of documents can exceed it.
  return lengths.size() > 0 && num_documents > kMax;
}

void FillRepeated(std::span<int32_t> documents, int64_t first, int64_t per_epoch) {
  for (size_t begin = 0; begin < documents.size(); begin += static_cast<size_t>(per_epoch)) {
    const auto epoch = documents.subspan(begin, static_cast<size_t>(per_epoch));
    std::iota(epoch.begin(), epoch.end(), static_cast<int32_t>(first));
  }
}

// Cuts windows of seq_length tokens from the shuffled documents, one after the other.
void FillSamples(LengthView lengths, const GptIndexParams& params, GptIndex& index) {
  const int64_t extra = params.extra_token ? 1 : 0;
  const int64_t rows = index.sample.size() / 2;
  const auto last = static_cast<int64_t>(index.document.size()) - 1;
  int64_t document = 0;
  int64_t offset = 0;
  for (int64_t row = 1; row < rows; ++row) {
    int64_t remaining = params.seq_length + extra;
    while (true) {
      const int64_t length = lengths[index.document[document]] - offset;
      remaining -= length;
      if (remaining <= 0) {
        offset += remaining + length - extra;
        break;
      }
      if (document == last) {  // a partial last sample
        offset = lengths[index.document[document]] - extra;
        break;
      }
      ++document;
      offset = 0;
    }
    index.sample.Set(2 * row, document);
    index.sample.Set(2 * row + 1, offset);
  }
}

template <typename T>
void ShuffleSamples(std::span<T> samples, int64_t first_part, NumpyRandomState& random) {
  std::iota(samples.begin(), samples.end(), T{0});
  random.Shuffle(samples.first(static_cast<size_t>(first_part)));
  random.Shuffle(samples.subspan(static_cast<size_t>(first_part)));
}

}  // namespace

int64_t CountTokens(LengthView lengths, int64_t first, int64_t end) {
  int64_t total = 0;
  for (int64_t i = first; i < end; ++i) {
    if (lengths[i] < 0) {
      throw DataError(fmt::format("sequence {} has the negative length {}", i, lengths[i]));
    }
    total += lengths[i];
  }
  return total;
}

int64_t GptIndexBytes(int64_t tokens_per_epoch, const GptIndexParams& params) {
  const Epochs epochs = PlanEpochs(tokens_per_epoch, params);
  const int64_t samples = CountSamples(epochs.count, tokens_per_epoch, params);
  const int64_t documents = epochs.count * (params.end_sequence - params.first_sequence);
  const int64_t narrow = std::numeric_limits<int32_t>::max();
  return documents * 4 + samples * (documents > narrow ? 16 : 8) + samples * 4;
}

GptIndex BuildGptIndex(LengthView lengths, int64_t tokens_per_epoch, const GptIndexParams& params) {
  const Epochs epochs = PlanEpochs(tokens_per_epoch, params);
  NumpyRandomState random(params.seed);
  GptIndex index;
  index.num_epochs = epochs.count;

  const int64_t per_epoch = params.end_sequence - params.first_sequence;
  index.document.resize(static_cast<size_t>(epochs.count * per_epoch));
  FillRepeated(index.document, params.first_sequence, per_epoch);
  const std::span<int32_t> documents(index.document);
  const auto last_epoch = static_cast<size_t>(epochs.separate_last ? per_epoch : 0);
  random.Shuffle(documents.first(documents.size() - last_epoch));
  random.Shuffle(documents.last(last_epoch));

  const int64_t samples = CountSamples(epochs.count, tokens_per_epoch, params);
  index.sample.Resize(2 * (samples + 1),
                      SampleIndexIsWide(lengths, static_cast<int64_t>(index.document.size())));
  FillSamples(lengths, params, index);

  const int64_t first_part = epochs.separate_last ? epochs.samples_without_last : samples;
  constexpr int64_t kNarrowLimit = std::numeric_limits<uint32_t>::max() - 1LL;
  index.shuffle.Resize(samples, samples >= kNarrowLimit);
  if (index.shuffle.is_wide()) {
    ShuffleSamples(index.shuffle.wide(), first_part, random);
  } else {
    ShuffleSamples(index.shuffle.narrow(), first_part, random);
  }
  return index;
}

}  // namespace muster::data
