#include "trainer/tokenizer/bpe_merger.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

using Merge = BpeModel::Merge;

// Above it a heap is faster than scanning for the lowest rank again and again.
constexpr size_t kShortWord = 96;

// The candidates that come first are kept in a heap. When those are used up, the next are looked
// for in the whole word; so memory is bounded, and as the heap is a fixed part of the word, the
// number of such rounds is too.
constexpr size_t kMinHeap = size_t{1} << 14;
constexpr size_t kSymbolsPerCandidate = 16;

// A word while it is merged. Each cell holds a symbol or, inside a symbol made of several cells,
// what is negative; there the second and the last cell hold minus the number of cells.
class LongWord {
 public:
  LongWord(const BpeModel& model, std::vector<int32_t>& symbols)
      : model_(model),
        symbols_(symbols),
        max_heap_(std::max(kMinHeap, symbols.size() / kSymbolsPerCandidate)) {
    heap_.reserve(max_heap_);
  }

  void Run() {
    do {
      Look();
      while (!heap_.empty()) TakeFirst();
      std::erase_if(symbols_, [](int32_t cell) { return cell < 0; });
    } while (limit_ != kNoLimit);
  }

 private:
  // A pair that merges: its rank, then the cell of its left symbol.
  using Candidate = uint64_t;
  static constexpr Candidate kNoLimit = std::numeric_limits<Candidate>::max();

  size_t End(size_t at) const {
    const bool wide = at + 1 < symbols_.size() && symbols_[at + 1] < 0;
    return wide ? at + static_cast<size_t>(-symbols_[at + 1]) : at + 1;
  }
  size_t Before(size_t at) const {
    return symbols_[at - 1] < 0 ? at - static_cast<size_t>(-symbols_[at - 1]) : at - 1;
  }
  Merge MergeAt(size_t at) const {
    const size_t next = End(at);
    return next < symbols_.size() ? model_.FindMerge(symbols_[at], symbols_[next]) : Merge{};
  }

  // Fills the heap from a word without wide symbols.
  void Look() {
    limit_ = kNoLimit;
    for (size_t at = 0; at < symbols_.size(); ++at) Add(at);
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // True: the pair that starts at `at` is a candidate now, the last of heap_.
  bool Add(size_t at) {
    const Merge merge = MergeAt(at);
    const Candidate candidate = Candidate{merge.rank} << 32 | at;
    if (merge.rank == BpeModel::kNoRank || candidate > limit_) return false;
    if (heap_.size() == max_heap_) KeepFirstHalf();
    if (candidate > limit_) return false;
    heap_.push_back(candidate);
    return true;
  }

  void Offer(size_t at) {
    if (Add(at)) std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // Leaves a heap, and a limit above which candidates are left for later.
  void KeepFirstHalf() {
    const auto half = heap_.begin() + static_cast<std::ptrdiff_t>(max_heap_ / 2);
    std::nth_element(heap_.begin(), half, heap_.end());
    limit_ = *half;
    heap_.erase(half + 1, heap_.end());
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  void TakeFirst() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const Candidate first = heap_.back();
    heap_.pop_back();
    const size_t at = first & std::numeric_limits<uint32_t>::max();
    if (symbols_[at] < 0) return;
    // The pair may have changed since. If its rank is the same it is a candidate all the same.
    const Merge merge = MergeAt(at);
    if (merge.rank != first >> 32) return;
    const size_t right = End(at);
    const size_t end = End(right);
    symbols_[at] = merge.result;
    symbols_[right] = -1;
    symbols_[at + 1] = symbols_[end - 1] = -static_cast<int32_t>(end - at);
    if (at > 0) Offer(Before(at));
    Offer(at);
  }

  const BpeModel& model_;
  std::vector<int32_t>& symbols_;
  const size_t max_heap_;
  std::vector<Candidate> heap_;  // all candidates up to limit_; the lowest on top
  Candidate limit_ = kNoLimit;
};

void MergeShort(const BpeModel& model, std::vector<int32_t>& symbols) {
  std::array<Merge, kShortWord> merges;  // of each symbol and the next
  int32_t* const symbol = symbols.data();
  size_t pairs = symbols.size() - 1;
  for (size_t i = 0; i < pairs; ++i) merges[i] = model.FindMerge(symbol[i], symbol[i + 1]);
  while (pairs > 0) {
    size_t first = 0;
    for (size_t i = 1; i < pairs; ++i) {
      if (merges[i].rank < merges[first].rank) first = i;
    }
    if (merges[first].rank == BpeModel::kNoRank) break;
    symbol[first] = merges[first].result;
    std::copy(symbol + first + 2, symbol + pairs + 1, symbol + first + 1);
    std::copy(&merges[first + 1], &merges[pairs], &merges[first]);
    --pairs;
    if (first > 0) merges[first - 1] = model.FindMerge(symbol[first - 1], symbol[first]);
    if (first < pairs) merges[first] = model.FindMerge(symbol[first], symbol[first + 1]);
  }
  symbols.resize(pairs + 1);
}

}  // namespace

void MergeSymbols(const BpeModel& model, std::vector<int32_t>& symbols) {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShortWord) return MergeShort(model, symbols);
  if (symbols.size() > std::numeric_limits<int32_t>::max()) {
    throw TokenizerError("a word of more than 2^31 symbols");
  }
  LongWord(model, symbols).Run();
}

}  // namespace muster::tokenizer
