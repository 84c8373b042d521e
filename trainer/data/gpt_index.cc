#include "trainer/data/gpt_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/numpy_random.h"
#include "trainer/data/parallel_for.h"

namespace muster::data {
namespace {

// The last epoch is shuffled apart from the others when fewer than this share of it is needed.
constexpr double kSeparateBelow = 0.80;
// Tokens of all samples: with one epoch more, still an int64.
constexpr int64_t kMostTokens = int64_t{1} << 61;
// Cutting on several threads reads every length twice.
constexpr int kFewThreads = 4;

int64_t ExtraTokens(const GptIndexParams& params) {
  return params.extra_token ? 1 : 0;
}

int64_t CountSamples(int64_t tokens, const GptIndexParams& params) {
  const int64_t usable = tokens - ExtraTokens(params);
  if (params.drop_last_partial_sequence) return usable / params.seq_length;
  // Single precision on purpose: so does Megatron.
  return static_cast<int64_t>(
      std::ceil(static_cast<float>(usable) / static_cast<float>(params.seq_length)));
}

void FillRepeated(std::span<int32_t> documents, int64_t first, int64_t per_epoch) {
  for (size_t begin = 0; begin < documents.size(); begin += static_cast<size_t>(per_epoch)) {
    const auto epoch = documents.subspan(begin, static_cast<size_t>(per_epoch));
    std::iota(epoch.begin(), epoch.end(), static_cast<int32_t>(first));
  }
}

// Cuts the row of shuffled documents into windows of seq_length tokens. Row r of the sample index
// names the document that holds token r*s (without the extra token: r*s - 1, and the token after
// it), and where in it.
template <typename T>
class SampleCutter {
 public:
  SampleCutter(LengthView lengths, std::span<const int32_t> documents, const GptIndexParams& params,
               std::span<T> rows)
      : lengths_(lengths),
        documents_(documents),
        seq_length_(params.seq_length),
        extra_(ExtraTokens(params)),
        rows_(rows) {}

  void Cut(int threads) {
    rows_[0] = rows_[1] = 0;
    const auto count = static_cast<int64_t>(documents_.size());
    if (threads < kFewThreads) {
      CutPart(0, count, 0);
    } else {
      std::vector<int64_t> before(static_cast<size_t>(threads) + 1, 0);
      ParallelFor(count, threads, [&](int part, int64_t begin, int64_t end) {
        before[static_cast<size_t>(part) + 1] = TokensOf(begin, end);
      });
      std::partial_sum(before.begin(), before.end(), before.begin());
      ParallelFor(count, threads, [&](int part, int64_t begin, int64_t end) {
        CutPart(begin, end, before[static_cast<size_t>(part)]);
      });
    }
  }

  // The rows beyond the last token: a partial last sample.
  void Close(int64_t tokens) {
    const auto last = static_cast<int64_t>(documents_.size()) - 1;
    for (int64_t row = NumRows() - 1; row > 0 && Target(row) >= tokens; --row) {
      Set(row, last, lengths_[documents_[static_cast<size_t>(last)]] - extra_);
    }
  }

 private:
  int64_t NumRows() const { return static_cast<int64_t>(rows_.size()) / 2; }
  int64_t Target(int64_t row) const { return row * seq_length_ - (1 - extra_); }
  void Set(int64_t row, int64_t document, int64_t offset) {
    rows_[static_cast<size_t>(2 * row)] = static_cast<T>(document);
    rows_[static_cast<size_t>(2 * row + 1)] = static_cast<T>(offset);
  }

  int64_t TokensOf(int64_t begin, int64_t end) const {
    int64_t sum = 0;
    for (int64_t d = begin; d < end; ++d) sum += lengths_[documents_[static_cast<size_t>(d)]];
    return sum;
  }

  // The rows whose token lies in the documents begin .. end, which `before` tokens precede.
  void CutPart(int64_t begin, int64_t end, int64_t before) {
    int64_t row = std::max<int64_t>(1, (before + (1 - extra_) + seq_length_ - 1) / seq_length_);
    for (int64_t d = begin; d < end && row < NumRows(); ++d) {
      const int64_t after = before + lengths_[documents_[static_cast<size_t>(d)]];
      for (; row < NumRows() && Target(row) < after; ++row) {
        Set(row, d, Target(row) - before + (1 - extra_));
      }
      before = after;
    }
  }

  LengthView lengths_;
  std::span<const int32_t> documents_;
  int64_t seq_length_;
  int64_t extra_;
  std::span<T> rows_;
};

template <typename T>
void CutSamples(LengthView lengths, const GptIndexShape& shape, const GptIndexParams& params,
                std::span<const int32_t> documents, std::span<T> rows, int threads) {
  SampleCutter<T> cutter(lengths, documents, params, rows);
  cutter.Cut(threads);
  cutter.Close(shape.num_epochs * shape.tokens_per_epoch);
}

template <typename T>
void ShuffleSamples(std::span<T> samples, int64_t first_part, NumpyRandomState& random) {
  std::iota(samples.begin(), samples.end(), T{0});
  random.Shuffle(samples.first(static_cast<size_t>(first_part)));
  random.Shuffle(samples.subspan(static_cast<size_t>(first_part)));
}

}  // namespace

bool GptIndexShape::wide_samples() const {
  // Lengths are int32, so only the number of documents can exceed it.
  return num_documents > std::numeric_limits<int32_t>::max();
}

bool GptIndexShape::wide_shuffle() const {
  return num_samples >= std::numeric_limits<uint32_t>::max() - 1LL;
}

int64_t GptIndexShape::bytes() const {
  return num_documents * 4 + (num_samples + 1) * (wide_samples() ? 16 : 8) +
         num_samples * (wide_shuffle() ? 8 : 4);
}

void CheckIndexSamples(int64_t samples) {
  if (samples <= kMostInIndex) return;
  throw DataError(fmt::format(
      "Megatron's order of {} samples needs an index that no memory holds (at most {} samples of a "
      "data set): ask for fewer (--train-iters, --train-samples, --eval-iters, "
      "--mid-level-dataset-surplus), or use --index-order streamed",
      samples, kMostInIndex));
}

GptIndexShape ShapeOf(int64_t tokens_per_epoch, const GptIndexParams& params) {
  GptIndexShape shape;
  shape.tokens_per_epoch = tokens_per_epoch;
  const int64_t per_epoch_documents = params.end_sequence - params.first_sequence;
  if (params.num_samples) {
    CheckIndexSamples(*params.num_samples);
    const int64_t extra = ExtraTokens(params);
    int64_t wanted = 0;
    if (__builtin_mul_overflow(*params.num_samples, params.seq_length, &wanted) ||
        wanted > kMostTokens) {
      throw DataError(
          fmt::format("{} samples of --seq-length {} are more tokens than can be "
                      "counted: ask for fewer",
                      *params.num_samples, params.seq_length));
    }
    wanted += extra;
    shape.num_epochs = std::max<int64_t>(1, (wanted + tokens_per_epoch - 1) / tokens_per_epoch);
    if (shape.num_epochs > kMostInIndex / std::max<int64_t>(1, per_epoch_documents)) {
      throw DataError(fmt::format(
          "Megatron's order of {} samples takes {} epochs of {} sequences, an index that no memory "
          "holds (at most {} entries): ask for fewer samples, or use --index-order streamed",
          *params.num_samples, shape.num_epochs, per_epoch_documents, kMostInIndex));
    }
    if (shape.num_epochs > 1) {
      shape.samples_without_last =
          ((shape.num_epochs - 1) * tokens_per_epoch - extra) / params.seq_length;
      const int64_t from_last = *params.num_samples - shape.samples_without_last;
      const int64_t per_epoch = (tokens_per_epoch - extra) / params.seq_length;
      shape.separate_last_epoch =
          from_last < static_cast<int64_t>(kSeparateBelow * static_cast<double>(per_epoch));
    }
  }
  shape.num_documents = shape.num_epochs * per_epoch_documents;
  shape.num_samples = CountSamples(shape.num_epochs * tokens_per_epoch, params);
  CheckIndexSamples(shape.num_samples);
  return shape;
}

int64_t CountTokens(const SequenceStore& store, int64_t first, int64_t end, int threads) {
  const LengthView lengths = store.lengths();
  std::vector<int64_t> sums(static_cast<size_t>(std::max(threads, 1)), 0);
  ParallelFor(end - first, threads, [&](int part, int64_t begin, int64_t stop) {
    int64_t sum = 0;
    int32_t signs = 0;
    for (int64_t i = first + begin; i < first + stop; ++i) {
      sum += lengths[i];
      signs |= lengths[i];
    }
    for (int64_t i = first + begin; signs < 0 && i < first + stop; ++i) {
      if (lengths[i] >= 0) continue;
      throw DataError(fmt::format("{}: sequence {} has the negative length {}: the .idx is damaged",
                                  store.WhereLength(i), i, lengths[i]));
    }
    sums[static_cast<size_t>(part)] = sum;
  });
  return std::accumulate(sums.begin(), sums.end(), int64_t{0});
}

GptIndex BuildGptIndex(LengthView lengths, const GptIndexShape& shape, const GptIndexParams& params,
                       int threads) {
  NumpyRandomState random(params.seed);
  GptIndex index;
  index.num_epochs = shape.num_epochs;

  const int64_t per_epoch = params.end_sequence - params.first_sequence;
  index.document = IndexArray<int32_t, int64_t>::Allocate(shape.num_documents, false);
  const std::span<int32_t> documents = index.document.narrow();
  FillRepeated(documents, params.first_sequence, per_epoch);
  const auto last_epoch = static_cast<size_t>(shape.separate_last_epoch ? per_epoch : 0);
  random.Shuffle(documents.first(documents.size() - last_epoch));
  random.Shuffle(documents.last(last_epoch));

  index.sample =
      IndexArray<int32_t, int64_t>::Allocate(2 * (shape.num_samples + 1), shape.wide_samples());
  index.shuffle = IndexArray<uint32_t, int64_t>::Allocate(shape.num_samples, shape.wide_shuffle());
  const std::jthread cutter([&] {
    if (index.sample.is_wide()) {
      CutSamples(lengths, shape, params, documents, index.sample.wide(), threads - 1);
    } else {
      CutSamples(lengths, shape, params, documents, index.sample.narrow(), threads - 1);
    }
  });
  const int64_t first_part =
      shape.separate_last_epoch ? shape.samples_without_last : shape.num_samples;
  if (index.shuffle.is_wide()) {
    ShuffleSamples(index.shuffle.wide(), first_part, random);
  } else {
    ShuffleSamples(index.shuffle.narrow(), first_part, random);
  }
  return index;
}

}  // namespace muster::data
