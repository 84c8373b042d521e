#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/data/batch.h"
#include "trainer/model/parameter.h"
#include "trainer/parallel/communicator.h"

namespace muster::model {

// Sums over one micro-batch; float64 scalars on the CPU are enough, on a GPU they stay on the
// device.
struct LossSum {
  at::Tensor loss;    // sum of the unmasked tokens' cross entropy (natural logarithm)
  at::Tensor tokens;  // number of unmasked tokens
};

// A decoder-only Llama with explicit forward and backward. One thread.
class Llama {
 public:
  // Allocates and initialises (normal(0, init_method_std), output layers / sqrt(2 L), norms to
  // identity; the same weights for the same seed whatever the layout). `amax_group`: ranks over
  // which delayed FP8 scaling reduces amaxes (TP x DP x CP of one pipeline stage); must outlive the
  // model; null = this rank alone.
  Llama(const config::ModelConfig& config, parallel::Communicator* amax_group);
  ~Llama();
  Llama(const Llama&) = delete;
  Llama& operator=(const Llama&) = delete;

  // Registration order: embedding, layers, final norm, head. Stable over the model's life.
  std::vector<Parameter>& parameters();
  // All gradients, contiguous (dtype fp32, or bf16 after UseBf16Gradients).
  at::Tensor gradient_buffer();
  // Main gradients in bf16 from now on (--grad-reduce-in-bf16): each micro-batch's gradient is
  // computed in fp32, added and rounded once. Before training; replaces the buffer and every
  // Parameter::grad.
  void UseBf16Gradients();

  // Before the first micro-batch of an iteration: weights are quantised anew on the next forward.
  void BeginIteration();
  // Forward and backward of the SUM of token losses; adds to the gradients.
  LossSum ForwardBackward(const data::Batch& batch);
  // Forward only: no gradients, no change of FP8 state.
  LossSum Evaluate(const data::Batch& batch);
  // Logits [B, S, padded vocabulary] in the compute dtype; no change of FP8 state.
  at::Tensor Logits(const at::Tensor& tokens_BS);

  // FP8 scaling state (scales and amax histories) by name, for checkpoints; empty without delayed
  // scaling. The tensors are live views: copying into them restores the state.
  std::vector<std::pair<std::string, at::Tensor>> fp8_state();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::model
