#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/data/batch.h"
#include "trainer/fp8/recipe.h"
#include "trainer/layers/block.h"
#include "trainer/layers/embedding.h"
#include "trainer/layers/head.h"
#include "trainer/layers/weight.h"
#include "trainer/model/parameter_spec.h"

namespace muster::model {

// Sums over one micro-batch; float64 scalars on the CPU are enough, on a GPU they stay on the
// device.
struct LossSum {
  at::Tensor loss;    // sum of the unmasked tokens' cross entropy (natural logarithm)
  at::Tensor tokens;  // number of unmasked tokens
};

// One micro-batch between its forward and its backward in a stage.
struct Pass {
  std::unique_ptr<layers::Context> context;
  at::Tensor activation_TC;  // what the next stage gets; of a stage with head nothing
  LossSum sum;               // of a stage with head
};

// The layers of one chunk. Holds nothing of a micro-batch: several may be in flight, forwards and
// backwards each in the order of micro-batches. One thread.
class Stage {
 public:
  // `weights`: one for each parameter of the chunk, in the order of ParameterSpecs; they outlive
  // the stage. `amax_group` as Llama's.
  Stage(const config::ModelConfig& config, const Chunk& chunk, const layers::TensorParallel& tensor,
        const layers::ContextParallel& context, parallel::Communicator* amax_group,
        const std::vector<layers::Weight*>& weights);

  // The weights have changed.
  void Invalidate();

  // `x_TC`: the activation of the stage before; not used by one with embedding. Without `training`
  // there is no backward and nothing changes. `loss_weight`: of the micro-batch in the gradients.
  Pass Forward(const data::Batch& batch, const at::Tensor& x_TC, bool training,
               double loss_weight = 1);
  // `dy_TC`: gradient of the pass's activation; not used by a stage with head. Returns the gradient
  // of x, undefined for a stage with embedding. Adds to the weights' gradients.
  at::Tensor Backward(Pass pass, at::Tensor dy_TC);

  // Of a stage with head: this rank's logits.
  at::Tensor Logits(const data::Batch& batch, const at::Tensor& x_TC);

  // Room for what stages hand each other of a micro-batch of so many tokens: an activation, or its
  // gradient.
  at::Tensor NewActivation(int64_t tokens) const;

  const Chunk& chunk() const { return chunk_; }
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // Null without FP8.
  fp8::Recipe* recipe() { return recipe_.get(); }

 private:
  void MakeAngles(int64_t positions);
  void MakeLayers(const std::vector<layers::Weight*>& weights);
  layers::Context Begin(const data::Batch& batch, bool training);
  // Up to the final norm, if the stage has one.
  at::Tensor Run(layers::Context& ctx, const data::Batch& batch, at::Tensor x_TC);

  const config::ModelConfig config_;
  const Chunk chunk_;
  const std::unique_ptr<fp8::Recipe> recipe_;
  const layers::Numerics numerics_;
  layers::AttentionShape attention_;  // the layers refer to it
  std::unique_ptr<layers::Embedding> embedding_;
  std::vector<layers::Block> blocks_;
  std::unique_ptr<layers::Norm> final_norm_;
  std::unique_ptr<layers::Head> head_;
};

}  // namespace muster::model
