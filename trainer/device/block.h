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
  // The branch that is not yet added to the residual stream, [T, C]; and the stream's gradient.
  Bfloat16* branch = nullptr;
  Bfloat16* gradient = nullptr;

  // Operands that die within the layer: FP8 codes, or in bf16 what is in the fields after them.
  uint8_t *norm_codes = nullptr, *attention_codes = nullptr, *swiglu_codes = nullptr;
  uint8_t* swiglu_again = nullptr;  // transposed
  uint8_t *fc2_codes = nullptr, *fc2_transposed = nullptr;
  uint8_t *fc1_codes = nullptr, *fc1_transposed = nullptr;
  uint8_t *proj_codes = nullptr, *proj_transposed = nullptr;
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

// What one layer keeps from its forward to its backward.
struct Saved {
  void Plan(Planner& planner, const Shape& shape, const std::string& prefix);

  Bfloat16 *attention_input = nullptr, *mlp_input = nullptr;  // of the norms: the residual stream
  float *attention_rstd = nullptr, *mlp_rstd = nullptr;
  Bfloat16* qkv = nullptr;  // rotated
  Bfloat16* attention = nullptr;
  float* logsumexp = nullptr;
  Bfloat16* gate_up = nullptr;
  // The inputs of the products, transposed in FP8; the norms' outputs themselves in bf16.
  uint8_t *qkv_input = nullptr, *proj_input = nullptr, *fc1_input = nullptr;
  Bfloat16 *attention_norm = nullptr, *mlp_norm = nullptr;
};

// One transformer layer. The residual stream x enters as a branch and a residual of which it is the
// sum, so that the addition is part of the norm's pass.
class Block {
 public:
  struct Parts {
    const Weight *attention_norm, *qkv, *proj, *mlp_norm, *fc1, *fc2;
  };

  // All pointers must outlive the block; `scaler` is null without FP8.
  Block(Ops* ops, Scaler* scaler, const Shape& shape, const Workspace* workspace,
        const Parts& parts, const StateTypes& types);

  void Plan(Planner& planner, const std::string& prefix) { saved_.Plan(planner, shape_, prefix); }

  // In: workspace.branch and `residual` (null: the branch is all). Out: workspace.branch and the
  // residual that goes with it. `training`: scales learn from this.
  const Bfloat16* Forward(const Bfloat16* residual, bool training);
  // Turns workspace.gradient from that of the layer's output into that of its input. `first`: the
  // gradients of matrices hold nothing yet.
  void Backward(bool first);

  void AppendProducts(std::vector<fp8::cuda::GemmSpec>& specs) const;

 private:
  Operand Norm(const Weight* weight, const Bfloat16* residual, const Linear& consumer,
               Bfloat16* sum, float* rstd, uint8_t* transposed, Bfloat16* plain, bool training);
  void NormBackward(const Weight* weight, const Bfloat16* input, const float* rstd);
  // The gradient of a linear's output as its products take it.
  Operand CastGradient(const Linear& linear, const Bfloat16* dy, int64_t columns, uint8_t* codes,
                       uint8_t* transposed);

  Ops* ops_;
  Scaler* scaler_;
  const Shape shape_;
  const Workspace& ws_;
  Parts parts_;
  Linear qkv_, proj_, fc1_, fc2_;
  Saved saved_;
};

}  // namespace muster::device
