#include "trainer/fp8/scaling.h"

#include <algorithm>
#include <bit>

namespace muster::fp8 {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

// fp8_max / amax, limited to the largest float.
float Ratio(float fp8_max, float amax) {
  const float scale = fp8_max / amax;
  return std::isinf(scale) ? kLargest : scale;
}

}  // namespace

float CurrentScale(float amax, Format format, float epsilon, bool power_of_two) {
  amax = amax < epsilon ? epsilon : amax;
  if (!std::isfinite(amax) || amax == 0) return 1.0f;
  const float scale = Ratio(MaxFinite(format), amax);
  if (!power_of_two) return scale;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scale) & 0xff800000);
}

void UpdateDelayed(const DelayedRule& rule, int64_t count, const float* reduced_amax, float* scale,
                   float* history) {
  const float fp8_max = std::ldexp(MaxFinite(rule.format), -rule.margin);
  const int64_t last = rule.history_len - 1;
  for (int64_t i = 0; i < count; ++i) {
    const float amax = reduced_amax[i] != 0 ? reduced_amax[i] : history[i];
    if (amax == 0) continue;
    float used = amax;
    for (int64_t row = 0; row < last; ++row) {
      const float older = history[(row + 1) * count + i];
      history[row * count + i] = older;
      if (rule.algo == config::AmaxAlgo::kMax) used = std::fmax(used, older);
    }
    history[last * count + i] = amax;
    history[i] = 0;
    if (std::isfinite(used) && used > 0) scale[i] = Ratio(fp8_max, used);
  }
}

}  // namespace muster::fp8
