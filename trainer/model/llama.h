#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/data/batch.h"
#include "trainer/model/parameter.h"
#include "trainer/model/stage.h"
#include "trainer/parallel/communicator.h"

namespace muster::model {

// The ranks that share one model, as one of them sees them, and what this one has of it. Groups
// outlive the model; null: this rank alone.
struct Sharing {
  parallel::Communicator* tensor = nullptr;
  bool sequence_parallel = false;
  layers::ContextParallel context = {};
  // Over which delayed FP8 scaling reduces amaxes (tensor x context x data of one pipeline stage).
  parallel::Communicator* amax = nullptr;
  std::vector<Chunk> chunks = {};  // empty: the whole model
  int64_t padding = 1;             // the buffers' length is a multiple of it
};

// A decoder-only Llama with explicit forward and backward, or the part of it that one rank has. One
// thread.
class Llama {
 public:
  // Allocates and initialises (normal(0, init_method_std), output layers / sqrt(2 L), norms to
  // identity; the same weights for the same seed whatever the layout).
  explicit Llama(const config::ModelConfig& config, const Sharing& sharing = {});
  ~Llama();
  Llama(const Llama&) = delete;
  Llama& operator=(const Llama&) = delete;

  // Registration order: embedding, layers, final norm, head; chunk by chunk. Stable over the
  // model's life.
  std::vector<Parameter>& parameters() { return parameters_; }
  // All gradients, contiguous (dtype fp32, or bf16 after UseBf16Gradients), then the padding. The
  // values lie in their buffer in the same way.
  at::Tensor gradient_buffer() { return gradients_; }
  at::Tensor value_buffer() { return values_; }
  // Main gradients in bf16 from now on (--grad-reduce-in-bf16): each micro-batch's gradient is
  // computed in fp32, added and rounded once. Before training; replaces the buffer and every
  // Parameter::grad.
  void UseBf16Gradients();

  // Before the first micro-batch of an iteration: weights are quantised anew on the next forward.
  void BeginIteration();

  // This rank's chunks in the order of the model.
  std::deque<Stage>& stages() { return stages_; }

  // For a rank with the whole model (or its tensor-parallel share):
  // forward and backward of the SUM of token losses; adds to the gradients, in which it counts
  // `loss_weight` times;
  LossSum ForwardBackward(const data::Batch& batch, double loss_weight = 1);
  // forward only: no gradients, no change of FP8 state;
  LossSum Evaluate(const data::Batch& batch);
  // this rank's logits [B, S, padded vocabulary] in the compute dtype; no change of FP8 state.
  at::Tensor Logits(const at::Tensor& tokens_BS);

  // FP8 scaling state (scales and amax histories) by name, for checkpoints; empty without delayed
  // scaling. The tensors are live views: copying into them restores the state.
  std::vector<std::pair<std::string, at::Tensor>> fp8_state();

 private:
  void AddParameters(const Chunk& chunk, const Sharing& sharing);
  void BindValues(int64_t padding);
  void BindGradients(at::ScalarType dtype);

  const config::ModelConfig config_;
  std::vector<Parameter> parameters_;
  at::Tensor values_;
  at::Tensor gradients_;
  std::deque<layers::Weight> weights_;  // one for each parameter; addresses are stable
  std::deque<Stage> stages_;            // addresses are stable
};

}  // namespace muster::model
