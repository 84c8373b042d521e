#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/data/batch.h"
#include "trainer/model/parameter.h"
#include "trainer/optim/adamw.h"
#include "trainer/parallel/groups.h"

namespace muster::engine {

// Sums over micro-batches.
struct Sums {
  double loss = 0;    // of the unmasked tokens' cross entropy
  double tokens = 0;  // unmasked
};

// A micro-batch; context-parallel ranks take their part of it.
struct MicroBatch {
  data::Batch batch;
  double tokens = 0;  // unmasked
};

// The micro-batches that one data-parallel rank takes between two optimizer steps.
struct MicroBatches {
  int64_t count = 0;
  // By number; may be called several times for one.
  std::function<MicroBatch(int64_t number)> load;
};

// How the sums of token losses become the gradient's loss.
enum class Averaging {
  kTokens,        // sums here; divided by the tokens of all ranks later (Normalize)
  kMicroBatches,  // the mean of the micro-batches' own means
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

  // Of this rank, without those that another one of the model counts.
  virtual int64_t parameter_count() const = 0;

  // Gradients and sums become 0; weights may have changed since.
  virtual void BeginIteration() = 0;
  // Forward and backward; adds to gradients and sums. May return before the work is done. All ranks
  // of a model make the call.
  virtual void ForwardBackward(const MicroBatches& micro_batches, Averaging averaging) = 0;
  // Since BeginIteration. Waits for the work. 0 but on the last stage of a pipeline.
  virtual Sums TakeSums() = 0;
  // Forward only; nothing changes. Sums as TakeSums().
  virtual Sums Evaluate(const MicroBatches& micro_batches) = 0;

  // Adds the gradients of all ranks that have the same parameters.
  virtual void ReduceGradients() = 0;
  // Divides the gradients by `tokens` (at least 1) and returns the L2 norm of the whole model's.
  virtual double Normalize(double tokens) = 0;
  // The first parameter with a gradient that is not finite; empty when there is none.
  virtual std::string NonFiniteGradient() = 0;
  // An optimizer step with the gradients times `coefficient`.
  virtual void Step(const optim::LearningRates& rates, double coefficient) = 0;

  // Optimizer steps taken.
  virtual int64_t step_count() const = 0;
  virtual void set_step_count(int64_t count) = 0;
  // The ranks that have the same parameters each have a part of the optimizer's state, and make
  // Fetch(kAll) and Store together.
  virtual bool SharesOptimizerState() const { return false; }
  // `optimizer` and `fp8` stay empty for kWeights.
  virtual State Fetch(Contents contents) = 0;
  // `state` came from Fetch, its tensors changed in place. What it leaves out stays as it is.
  virtual void Store(const State& state) = 0;

  // The GPU's energy counter in joules; negative where there is none.
  virtual double Joules() const { return -1; }
};

// On --device. `groups` outlive the engine. `local_rank`: which of the machine's GPUs. Throws
// ConfigError for what the device can't do.
std::unique_ptr<Engine> MakeEngine(const config::TrainConfig& config, int64_t local_rank,
                                   const parallel::Groups& groups);

std::unique_ptr<Engine> MakeCpuEngine(const config::TrainConfig& config,
                                      const parallel::Groups& groups);

}  // namespace muster::engine
