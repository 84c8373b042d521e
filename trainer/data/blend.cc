#include "trainer/data/blend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <span>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

constexpr char kBlanks[] = " \t\n\r\f\v";

std::string Strip(const std::string& word) {
  const size_t begin = word.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return word.substr(begin, word.find_last_not_of(kBlanks) - begin + 1);
}

// Python's float(): no hexadecimal digits; underscores between digits.
std::optional<double> ParseWeight(const std::string& word) {
  const std::string stripped = Strip(word);
  const auto is_digit = [&](size_t i) {
    return i < stripped.size() && stripped[i] >= '0' && stripped[i] <= '9';
  };
  std::string plain;
  for (size_t i = 0; i < stripped.size(); ++i) {
    const bool joins = stripped[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1);
    if (!joins) plain += stripped[i];
  }
  if (plain.empty() || plain.find_first_of("xX") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(plain.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  return value;
}

// numpy.sum: eight running sums for blocks of up to 128, halves above.
double NumpySum(std::span<const double> values) {
  constexpr size_t kBlock = 128;
  const size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), 0.0);
  if (n > kBlock) {
    const size_t half = n / 2 - (n / 2) % 8;
    return NumpySum(values.first(half)) + NumpySum(values.subspan(half));
  }
  double r[8];
  std::copy_n(values.begin(), 8, r);
  size_t i = 8;
  for (; i + 8 <= n; i += 8) {
    for (size_t k = 0; k < 8; ++k) r[k] += values[i + k];
  }
  double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; ++i) sum += values[i];
  return sum;
}

// `size` samples. `open(d)` says whether data set d may still give one; one always may.
template <typename Open>
BlendIndex Deal(const std::vector<double>& weights, int64_t size, Open open) {
  BlendIndex index{IndexArray<int16_t, int16_t>::Allocate(size, false),
                   IndexArray<int64_t, int64_t>::Allocate(size, false)};
  const std::span<int16_t> dataset = index.dataset.narrow();
  const std::span<int64_t> dataset_sample = index.dataset_sample.narrow();
  std::vector<int64_t> given(weights.size(), 0);
  for (int64_t i = 0; i < size; ++i) {
    const double position = std::max(static_cast<double>(i), 1.0);
    double largest = std::numeric_limits<double>::lowest();
    size_t chosen = 0;
    for (size_t d = 0; d < weights.size(); ++d) {
      if (!open(d, given[d])) continue;
      const double lag = weights[d] * position - static_cast<double>(given[d]);
      if (lag > largest) {
        largest = lag;
        chosen = d;
      }
    }
    dataset[static_cast<size_t>(i)] = static_cast<int16_t>(chosen);
    dataset_sample[static_cast<size_t>(i)] = given[chosen]++;
  }
  return index;
}

}  // namespace

BlendList ParseBlend(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) all.push_back(Strip(word));
  if (words.size() % 2 == 1) return {all, std::nullopt};
  std::vector<double> weights;
  std::vector<std::string> prefixes;
  std::string not_a_number;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (const auto weight = ParseWeight(words[i])) {
      weights.push_back(*weight);
    } else {
      not_a_number = words[i];
    }
    prefixes.push_back(all[i + 1]);
  }
  if (weights.empty()) return {all, std::nullopt};
  if (weights.size() != prefixes.size()) {
    throw DataError("'" + not_a_number +
                    "' stands where a weight is expected (WEIGHT PREFIX WEIGHT PREFIX ..., or "
                    "prefixes only)");
  }
  return {prefixes, weights};
}

std::vector<double> Normalize(const std::vector<double>& weights) {
  const double sum = NumpySum(weights);
  if (!(sum > 0) || !std::isfinite(sum)) {
    throw DataError(fmt::format("data path: the weights add up to {}", sum));
  }
  std::vector<double> normalized;
  for (const double weight : weights) {
    if (!(weight >= 0))
      throw DataError(fmt::format("data path: the weight {} is negative", weight));
    normalized.push_back(weight / sum);
  }
  return normalized;
}

std::vector<int64_t> SizesOfParts(const std::vector<double>& weights, int64_t size,
                                  double surplus) {
  // Exact in double, and their sum fits.
  constexpr double kMostSamples = 0x1p53;
  std::vector<int64_t> sizes;
  sizes.reserve(weights.size());
  for (const double weight : weights) {
    const double part = std::ceil(std::ceil(static_cast<double>(size) * weight) * (1 + surplus));
    if (!(part >= 0 && part <= kMostSamples)) {
      throw DataError(fmt::format(
          "a blend of {} samples with --mid-level-dataset-surplus {} asks a data set of weight {} "
          "for {} samples; at most {} can be counted: ask for fewer samples or a smaller surplus",
          size, surplus, weight, part, kMostSamples));
    }
    sizes.push_back(static_cast<int64_t>(part));
  }
  return sizes;
}

BlendIndex BuildBlend(const std::vector<double>& weights, int64_t size) {
  return Deal(weights, size, [](size_t, int64_t) { return true; });
}

BlendIndex BuildExhaustiveBlend(const std::vector<int64_t>& sizes) {
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  std::vector<double> weights;
  weights.reserve(sizes.size());
  for (const int64_t size : sizes) {
    weights.push_back(static_cast<double>(size) / static_cast<double>(total));
  }
  return Deal(weights, total, [&sizes](size_t d, int64_t given) { return given < sizes[d]; });
}

}  // namespace muster::data
