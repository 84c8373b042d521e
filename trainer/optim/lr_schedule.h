#pragma once

#include <cstdint>

namespace muster::optim {

enum class LrDecayStyle { kConstant, kLinear, kCosine, kInverseSquareRoot };

// The learning rate by samples consumed, as Megatron's OptimizerParamScheduler gives it. A plain
// value.
struct LrSchedule {
  LrDecayStyle style = LrDecayStyle::kLinear;
  double max_lr = 0;
  double min_lr = 0;
  double warmup_init = 0;
  double warmup_samples = 0;  // with --lr-warmup-fraction not always whole
  int64_t decay_samples =
      0;  // the sample at which min_lr is reached, counted from 0 like warmup_samples

  // For the iteration that starts after `samples`: iteration 1 (samples = 0) of a run with warm-up
  // uses warmup_init. Linear and cosine need decay_samples > warmup_samples (std::invalid_argument
  // otherwise).
  double At(int64_t samples) const;
};

}  // namespace muster::optim
