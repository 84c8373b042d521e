#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/device/model.h"

// Three optimizer steps of a small Llama, by the planned model on some device and by model::Llama:
// in the same numerics, and exactly (fp32).

namespace muster::device {

struct TrainingCase {
  std::string name;
  config::Fp8Recipe recipe;
  bool tied;
};
inline const TrainingCase kTrainingCases[] = {
    {"bf16", config::Fp8Recipe::kNone, false},
    {"bf16_tied", config::Fp8Recipe::kNone, true},
    {"delayed", config::Fp8Recipe::kDelayed, false},
    {"tensorwise", config::Fp8Recipe::kTensorwise, true},
};

// What each step gives.
struct Trace {
  std::vector<double> losses, norms;
  std::vector<at::Tensor> gradients;  // [step], all parameters' in one vector, divided by tokens
  at::Tensor weights;                 // at the end, in one vector
  double held_out = 0;                // loss of an evaluation at the end
};

config::ModelConfig SmallModel(const TrainingCase& of);

// What the planned model makes again; see Shape.
struct Recompute {
  int64_t layers = 0;
  bool swiglu = false;
};

Trace TrainReference(const config::ModelConfig& config);
Trace TrainPlanned(const config::ModelConfig& config, std::unique_ptr<Ops> ops,
                   const StateTypes& types, const Recompute& recompute = {});

// The planned run is as near to exact arithmetic as model::Llama in the same numerics is (within
// half as much again), and so the two are near each other.
void ExpectAsGood(const TrainingCase& of, const Trace& planned);

}  // namespace muster::device
