#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/data/batch.h"
#include "trainer/model/parameter.h"
#include "trainer/optim/adamw.h"
#include "trainer/parallel/communicator.h"

namespace muster::engine {

// Sums over micro-batches.
struct Sums {
  double loss = 0;    // of the unmasked tokens' cross entropy
  double tokens = 0;  // unmasked
};

// How much of the state is wanted on the host.
enum class Contents { kWeights, kAll };

// What a checkpoint keeps, on the host: fp32 (fp64 in fp64 runs). Perhaps views of the engine's own
// tensors, perhaps copies: whoever changes them calls Engine::Store.
struct State {
  std::vector<model::Parameter> parameters;  // values; gradients may be undefined
  std::vector<std::pair<std::string, at::Tensor>> optimizer;
  std::vector<std::pair<std::string, at::Tensor>> fp8;
};

// One rank's model, gradients and optimizer on the device that trains them: all that the loop
// drives. One thread.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual int64_t parameter_count() const = 0;

  // Gradients and sums become 0; weights may have changed since.
  virtual void BeginIteration() = 0;
  // Forward and backward of the SUM of token losses; adds to gradients and sums. May return before
  // the work is done.
  virtual void ForwardBackward(const data::Batch& batch) = 0;
  // Since BeginIteration. Waits for the work.
  virtual Sums TakeSums() = 0;
  // Forward only; nothing changes.
  virtual Sums Evaluate(const data::Batch& batch) = 0;

  virtual void ScaleGradients(double factor) = 0;
  // Adds the gradients of all ranks of the group.
  virtual void AllReduceGradients(parallel::Communicator& group) = 0;
  // Divides the gradients by `tokens` (at least 1) and returns their L2 norm.
  virtual double Normalize(double tokens) = 0;
  // The first parameter with a gradient that is not finite; empty when there is none.
  virtual std::string NonFiniteGradient() = 0;
  // An optimizer step with the gradients times `coefficient`.
  virtual void Step(const optim::LearningRates& rates, double coefficient) = 0;

  // Optimizer steps taken.
  virtual int64_t step_count() const = 0;
  virtual void set_step_count(int64_t count) = 0;
  // `optimizer` and `fp8` stay empty for kWeights.
  virtual State Fetch(Contents contents) = 0;
  // `state` came from Fetch, its tensors changed in place. What it leaves out stays as it is.
  virtual void Store(const State& state) = 0;

  // The GPU's energy counter in joules; negative where there is none.
  virtual double Joules() const { return -1; }
};

// On --device. `amax_group`, over which delayed FP8 scaling reduces, must outlive the engine; null:
// this rank alone. `local_rank`: which of the machine's GPUs. Throws ConfigError for what the
// device can't do.
std::unique_ptr<Engine> MakeEngine(const config::TrainConfig& config, int64_t local_rank,
                                   parallel::Communicator* amax_group);

std::unique_ptr<Engine> MakeCpuEngine(const config::TrainConfig& config,
                                      parallel::Communicator* amax_group);

}  // namespace muster::engine
