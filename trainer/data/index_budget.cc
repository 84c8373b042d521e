#include "trainer/data/index_budget.h"

#include <fmt/format.h>

#include <cmath>

#include "trainer/data/data_error.h"

namespace muster::data {
namespace {

// Nanoseconds for an element, measured with arrays far larger than the caches (muster_data_bench).
constexpr double kPerDocument = 20;
constexpr double kPerSample = 20;
constexpr double kPerBlendDraw = 3;
constexpr double kPerBlendChoice = 2;

std::string TimeText(double seconds) {
  if (seconds < 90) return fmt::format("{:.1f} s", seconds);
  return fmt::format("{:.0f} minutes", seconds / 60);
}

}  // namespace

double IndexCost::Seconds() const {
  const auto ns = static_cast<double>(documents) * kPerDocument +
                  static_cast<double>(samples) * kPerSample +
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
