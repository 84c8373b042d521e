#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/fp8/recipe.h"
#include "trainer/fp8/scaling.h"

namespace muster::fp8 {

// Delayed scaling, as Transformer Engine's DelayedScaling: a tensor is quantised with a scale that
// follows from the amaxes of earlier micro-batches. Each linear has three forward slots (input,
// weight, output; the last is never fed) and two backward slots (grad output, grad input; the last
// is never fed), of which the state keeps scale and amax history.
class DelayedRecipe : public Recipe {
 public:
  DelayedRecipe(const config::Fp8Config& config, const std::vector<std::string>& linears,
                parallel::Communicator* amax_group);

  QuantizedTensor Quantize(int64_t linear, Role role, const at::Tensor& x, bool record) override;
  void AfterForward() override;
  void AfterBackward() override;
  // <linear>.fp8.scale_fwd [3], .amax_history_fwd [H, 3], .scale_bwd [2], .amax_history_bwd [H, 2].
  std::vector<std::pair<std::string, at::Tensor>> State() override;

 private:
  // One direction of all linears, so that their amaxes are reduced in one call and updated in one
  // pass.
  struct Direction {
    int64_t slots;       // per linear
    at::Tensor scale;    // [linears * slots]
    at::Tensor history;  // [H, linears * slots]; row 0 collects amaxes until the update
  };

  Direction MakeDirection(int64_t slots) const;
  void Update(Direction& direction, Format format);

  const config::Fp8Config config_;
  const std::vector<std::string> linears_;
  parallel::Communicator* const amax_group_;
  Direction forward_;
  Direction backward_;
};

}  // namespace muster::fp8
