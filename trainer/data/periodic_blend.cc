#include "trainer/data/periodic_blend.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace muster::data {
namespace {

// Weights are kept to a part in a million.
constexpr int64_t kPeriod = int64_t{1} << 20;

std::vector<int64_t> RoundToPeriod(const std::vector<double>& weights) {
  std::vector<int64_t> counts;
  std::vector<std::pair<double, size_t>> remainders;
  for (size_t d = 0; d < weights.size(); ++d) {
    const double exact = weights[d] * static_cast<double>(kPeriod);
    const double whole = std::floor(exact);
    counts.push_back(static_cast<int64_t>(whole));
    remainders.emplace_back(whole - exact, d);  // the largest remainder first
  }
  std::sort(remainders.begin(), remainders.end());
  int64_t rest = kPeriod - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (const auto& [negative, d] : remainders) {
    if (rest <= 0 || negative == 0) break;
    ++counts[d];
    --rest;
  }
  for (size_t d = 0; d < weights.size(); ++d) {
    if (weights[d] > 0) counts[d] = std::max<int64_t>(counts[d], 1);
  }
  return counts;
}

}  // namespace

// Draw j of a data set with c draws belongs at (j + 1/2) / c of the period; all draws are put in
// that order, equal places by number of the data set.
PeriodicBlend::PeriodicBlend(const std::vector<double>& weights) : counts_(RoundToPeriod(weights)) {
  struct Wish {
    double place;
    int32_t dataset;
    int32_t position;
  };
  std::vector<Wish> wishes;
  for (size_t d = 0; d < counts_.size(); ++d) {
    for (int64_t j = 0; j < counts_[d]; ++j) {
      wishes.push_back({(static_cast<double>(j) + 0.5) / static_cast<double>(counts_[d]),
                        static_cast<int32_t>(d), static_cast<int32_t>(j)});
    }
  }
  std::stable_sort(wishes.begin(), wishes.end(),
                   [](const Wish& a, const Wish& b) { return a.place < b.place; });
  for (const Wish& wish : wishes) {
    dataset_.push_back(wish.dataset);
    position_.push_back(wish.position);
  }
}

PeriodicBlend::Draw PeriodicBlend::operator()(int64_t i) const {
  const auto period = static_cast<int64_t>(dataset_.size());
  const auto at = static_cast<size_t>(i % period);
  const int64_t dataset = dataset_[at];
  return {dataset, i / period * counts_[static_cast<size_t>(dataset)] + position_[at]};
}

}  // namespace muster::data
