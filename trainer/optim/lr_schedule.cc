#include "trainer/optim/lr_schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace muster::optim {
namespace {

constexpr double kPi = 3.141592653589793;

}  // namespace

double LrSchedule::At(int64_t samples) const {
  const double n = static_cast<double>(samples);
  const double decay = static_cast<double>(decay_samples);
  if (warmup_samples > 0 && n <= warmup_samples) {
    return warmup_init + (max_lr - warmup_init) * n / warmup_samples;
  }
  if (style == LrDecayStyle::kConstant) return max_lr;
  if (samples > decay_samples) return min_lr;
  if (style == LrDecayStyle::kInverseSquareRoot) {
    return std::max(min_lr, max_lr * std::sqrt(std::max(warmup_samples, 1.0) / std::max(n, 1.0)));
  }
  if (decay <= warmup_samples) {
    throw std::invalid_argument("--lr-decay-samples " + std::to_string(decay_samples) +
                                " must exceed --lr-warmup-samples " +
                                std::to_string(warmup_samples));
  }
  const double ratio = (n - warmup_samples) / (decay - warmup_samples);
  const double share =
      style == LrDecayStyle::kCosine ? 0.5 * (std::cos(kPi * ratio) + 1) : 1 - ratio;
  return min_lr + share * (max_lr - min_lr);
}

}  // namespace muster::optim
