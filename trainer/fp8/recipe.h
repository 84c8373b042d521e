#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/fp8/quantized_tensor.h"
#include "trainer/parallel/communicator.h"

namespace muster::fp8 {

// The three operands of a linear's GEMMs.
enum class Role { kInput, kWeight, kGradOutput };

// How the FP8 linears of one model get their scales; the only place that knows. Linears are
// numbered in the order of the names given to MakeRecipe. One thread; every rank of the amax group
// makes the same calls in the same order.
class Recipe {
 public:
  virtual ~Recipe() = default;

  // Quantises one operand. `record`: this use counts for later scales (training; not evaluation).
  virtual QuantizedTensor Quantize(int64_t linear, Role role, const at::Tensor& x, bool record) = 0;

  // After a micro-batch's forward (backward) through all linears, when it was recorded.
  virtual void AfterForward() = 0;
  virtual void AfterBackward() = 0;

  // What a checkpoint must keep, by stable names: live views, which may be strided.
  virtual std::vector<std::pair<std::string, at::Tensor>> State() = 0;
};

// Null for Fp8Recipe::kNone and without linears. `amax_group` (may be null: this rank alone) must
// outlive the recipe.
std::unique_ptr<Recipe> MakeRecipe(const config::Fp8Config& config,
                                   const std::vector<std::string>& linears,
                                   parallel::Communicator* amax_group);

// The format of each operand: hybrid is e4m3 forward and e5m2 backward.
Format FormatOf(config::Fp8Format format, Role role);

}  // namespace muster::fp8
