#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/device/linear.h"
#include "trainer/device/memory_plan.h"
#include "trainer/device/ops.h"
#include "trainer/device/scaler.h"
#include "trainer/device/shape.h"

namespace muster::device {

// What all layers work in: buffers that are free again when a layer is done.
struct Workspace {
  void Plan(Planner& planner, const Shape& shape);

  const float *cos = nullptr, *sin = nullptr;  // [positions, head_dim / 2]
  // Of the residual stream, [T, C]; and the same in FP8 for the products that take it next.
  Bfloat16* gradient = nullptr;
  uint8_t *gradient_codes = nullptr, *gradient_transposed = nullptr;

  // Operands that die within the layer: FP8 codes, or in bf16 what is in the fields after them.
  uint8_t *norm_codes = nullptr, *attention_codes = nullptr, *swiglu_codes = nullptr;
  uint8_t* swiglu_again = nullptr;  // transposed
  uint8_t *fc1_codes = nullptr, *fc1_transposed = nullptr;
  uint8_t *qkv_codes = nullptr, *qkv_transposed = nullptr;
  Bfloat16* swiglu = nullptr;  // bf16 alone

  Bfloat16* dswiglu = nullptr;
  Bfloat16* dnorm = nullptr;
  Bfloat16* dattention = nullptr;
  Bfloat16* dqkv = nullptr;

 private:
  template <typename T>
  static void WantConst(Planner& planner, const T** pointer, const char* name, int64_t count) {
    planner.Want(const_cast<T**>(pointer), name, count);
  }
};

// What one layer keeps from its forward to its backward, beside its input.
struct Saved {
  void Plan(Planner& planner, const Shape& shape, const std::string& prefix, bool keeps_swiglu);

  Bfloat16* mlp_input = nullptr;  // of the norm: the residual stream
  float *attention_rstd = nullptr, *mlp_rstd = nullptr;
  Bfloat16* qkv = nullptr;  // rotated
  Bfloat16* attention = nullptr;
  float* logsumexp = nullptr;
  Bfloat16* gate_up = nullptr;
  // The inputs of the products, transposed in FP8; the norms' outputs themselves in bf16.
  uint8_t *qkv_input = nullptr, *proj_input = nullptr, *fc1_input = nullptr;
  uint8_t* fc2_input = nullptr;  // null: not kept
  Bfloat16 *attention_norm = nullptr, *mlp_norm = nullptr;
};

// Workspace.gradient on its way down through the layers.
class StreamGradient {
 public:
  // Pointers must outlive this; `scaler` is null without FP8.
  StreamGradient(Ops* ops, Scaler* scaler, const kernels::RmsNormShape& shape,
                 const Workspace* workspace)
      : ops_(ops), scaler_(scaler), shape_(shape), ws_(*workspace) {}

  // Adds what a norm's input gets from the gradient of its output. The result is also made as the
  // products of linear `consumer` take it (negative: there is none), in the same pass.
  Operand AddNorm(const Weight& norm, const Bfloat16* dy, const Bfloat16* input, const float* rstd,
                  int64_t consumer) const;

 private:
  Ops* ops_;
  Scaler* scaler_;
  const kernels::RmsNormShape shape_;
  const Workspace& ws_;
};

// One transformer layer. What its branches give is added to the residual stream by their last
// product.
class Block {
 public:
  struct Parts {
    const Weight *attention_norm, *qkv, *proj, *mlp_norm, *fc1, *fc2;
  };

  // All pointers must outlive the block; `scaler` is null without FP8. `shared`: what layers that
  // are recomputed work in, one after the other; null: this one keeps what it needs.
  Block(Ops* ops, Scaler* scaler, const Shape& shape, const Workspace* workspace,
        const Saved* shared, const Parts& parts, const StateTypes& types);

  void Plan(Planner& planner, const std::string& prefix);

  // Where the residual stream is left for it.
  Bfloat16* input() const { return input_; }
  // From the input to `output`. Scales learn from training alone.
  void Forward(Bfloat16* output, Run run);
  // The linear that takes the gradient of the layer's output.
  int64_t output_linear() const { return fc2_.number(); }
  // Turns the stream's gradient from that of the layer's output, which `dy` is too, into that of
  // its input, and returns that as `consumer` takes it. `first`: the gradients of matrices hold
  // nothing yet.
  Operand Backward(const StreamGradient& gradient, const Operand& dy, int64_t consumer, bool first);

  void AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const;

 private:
  // Up to the input of fc2.
  void ForwardToSwiglu(Run run);
  // The input of `linear` in FP8; see Scaler::Make.
  template <typename Produce>
  Operand MakeInput(const Linear& linear, uint8_t* codes, uint8_t* transposed, Run run,
                    const Produce& produce) const;
  Operand Norm(const Weight* weight, const Bfloat16* input, const Linear& consumer, float* rstd,
               uint8_t* transposed, Bfloat16* plain, Run run) const;
  // The kept input of a linear, as the product for its weight's gradient takes it.
  Operand Input(const Linear& linear, const uint8_t* transposed, const Bfloat16* plain) const;

  Ops* ops_;
  Scaler* scaler_;
  const Shape shape_;
  const Workspace& ws_;
  Parts parts_;
  Linear qkv_, proj_, fc1_, fc2_;
  Bfloat16* input_ = nullptr;
  Saved own_;
  const Saved& saved_;
  const bool recompute_;
};

}  // namespace muster::device
