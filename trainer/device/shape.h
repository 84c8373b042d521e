#pragma once

#include <cstdint>

#include "trainer/config/model_config.h"
#include "trainer/fp8/cuda/linear_gemms.h"
#include "trainer/kernels/rmsnorm.h"
#include "trainer/kernels/rope.h"

namespace muster::device {

// What the planned model computes with: its part of the network (all of it on one rank) and the
// micro-batch.
struct Shape {
  config::ModelConfig model;
  int64_t batch = 0;  // micro-batch size
  fp8::cuda::FastAccumulation fast = {};
  int64_t head_tokens = 8192;  // whose logits exist at a time, at most
  // The first layers keep their input alone, and run forward again before their backward.
  int64_t recomputed_layers = 0;
  // In FP8, the other layers make SwiGLU's output once more in their backward, instead of keeping
  // it: a byte for each token and channel. In bf16 all layers do.
  bool recompute_swiglu = false;

  int64_t tokens() const { return batch * model.seq_length; }
  int64_t hidden() const { return model.hidden_size; }
  int64_t ffn() const { return model.ffn_hidden_size; }
  int64_t vocab() const { return model.padded_vocab_size; }
  int64_t attention() const { return model.num_attention_heads * model.kv_channels; }
  bool fp8() const { return model.fp8.recipe != config::Fp8Recipe::kNone; }

  kernels::QkvShape Qkv() const {
    return {batch, model.seq_length, model.num_query_groups,
            model.num_attention_heads / model.num_query_groups, model.kv_channels};
  }
  kernels::RmsNormShape Norm() const {
    return {tokens(), hidden(), model.norm_epsilon, model.apply_layernorm_1p ? 1.0 : 0.0};
  }
};

// In which types the optimizer's state is kept, where there is a choice.
struct StateTypes {
  bool bf16_moments = false;
  bool bf16_gradients = false;  // of FP8 linears
};

// Why a layer runs forward: to evaluate; to train; once more, in the backward of the same
// micro-batch.
enum class Run { kEvaluation, kTraining, kAgain };

// What a micro-batch is for: to evaluate; to train, as the first of an iteration, which writes the
// gradients of matrices instead of adding to them; to train.
enum class Pass { kEvaluation, kFirst, kNext };

// When buffers are in use: a layer's forward, the head, a layer's backward. All layers share the
// same phases, so what outlives a layer is alive from kForwardStart or to kBackwardEnd.
enum Phase : int {
  kForwardStart = 1,
  kNormQkv,
  kQkv,
  kAttention,
  kCastAttention,
  kProj,
  kNormFc1,
  kFc1,
  kSwiglu,
  kFc2,
  kHeadNorm,
  kHead,
  kHeadNormBackward,
  kFc2Input,
  kSwigluBackward,
  kFc2Weight,
  kFc1Weight,
  kFc1Input,
  kNormFc1Backward,
  kProjWeight,
  kProjInput,
  kAttentionBackward,
  kRopeBackward,
  kQkvWeight,
  kQkvInput,
  kNormQkvBackward,
  kBackwardEnd,
};

}  // namespace muster::device
