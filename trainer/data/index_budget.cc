#include "trainer/data/index_budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <span>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/numpy_random.h"

namespace muster::data {
namespace {

// What an element costs, in draws of a shuffle: a document is shuffled, its length is looked up
// without knowing the place ahead, a sample is shuffled, and all arrays are touched for the first
// time. From 62 ns for both where a draw took 9 (data.index.* of muster_data_bench).
constexpr double kDrawsPerDocument = 5;
constexpr double kDrawsPerSample = 2;
// Nanoseconds of the blend's loops, which stay in the caches.
constexpr double kPerBlendDraw = 3;
constexpr double kPerBlendChoice = 2;

// What a draw of a shuffle of `size` elements takes here and now, in nanoseconds, by drawing some
// in an array that is as large or far larger than the caches.
double MeasureDraw(int64_t size) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  constexpr int64_t kMostDraws = int64_t{1} << 20;
  std::vector<int32_t> values(static_cast<size_t>(std::clamp<int64_t>(size, 2, kMostElements)), 1);
  NumpyRandomState random(1);
  timespec start{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);  // others on this machine do not count
  const int64_t draws = random.ShuffleSome(std::span(values), kMostDraws);
  timespec end{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return (1e9 * static_cast<double>(end.tv_sec - start.tv_sec) +
          static_cast<double>(end.tv_nsec - start.tv_nsec)) /
         static_cast<double>(draws);
}

std::string TimeText(double seconds) {
  if (seconds < 90) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} minutes", seconds / 60);
}

}  // namespace

double IndexCost::Seconds() const {
  const double draws = static_cast<double>(documents) * kDrawsPerDocument +
                       static_cast<double>(samples) * kDrawsPerSample;
  const auto ns = draws * MeasureDraw(std::max(documents, samples)) +
                  static_cast<double>(blend_draws) * kPerBlendDraw +
                  static_cast<double>(blend_choices) * kPerBlendChoice;
  return ns * 1e-9;
}

std::string BytesText(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.1f} GiB", std::ldexp(value, -30));
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.1f} MiB", std::ldexp(value, -20));
  return fmt::format("{:.1f} KiB", std::ldexp(value, -10));
}

std::string CostText(const IndexCost& cost, int64_t limit) {
  return fmt::format(
      "sample order: Megatron's index of {} samples takes {} of memory (--index-memory {}) and, "
      "unless it is cached, about {} to build",
      cost.samples, BytesText(cost.bytes), BytesText(limit), TimeText(cost.Seconds()));
}

void CheckBudget(const IndexCost& cost, int64_t limit) {
  if (cost.bytes <= limit) return;
  const auto whole_gib =
      static_cast<int64_t>(std::ceil(std::ldexp(static_cast<double>(cost.bytes), -30)));
  throw DataError(fmt::format(
      "Megatron's order of {} samples needs an index of {} in memory and about {} to build it; "
      "--index-memory allows {}. Give --index-memory {}GiB, ask for fewer samples, or use "
      "--index-order streamed (shuffled too, needs no memory, but is another order)",
      cost.samples, BytesText(cost.bytes), TimeText(cost.Seconds()), BytesText(limit), whole_gib));
}

}  // namespace muster::data
