#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/fp8/cuda/gemm_arguments.h"
#include "trainer/fp8/cuda/gemm_spec.h"
#include "trainer/fp8/scaling.h"
#include "trainer/kernels/adamw_bf16.h"
#include "trainer/kernels/fp8_output.h"
#include "trainer/kernels/rmsnorm_fp8.h"
#include "trainer/kernels/rope_packed.h"
#include "trainer/kernels/swiglu_fp8.h"
#include "trainer/kernels/token_groups.h"

// The seam between the planned model of this folder and a device: memory, and the operations that
// the model is made of. CudaOps runs them on a GPU; a test's implementation runs the CPU references
// of trainer/kernels, which proves the model without a GPU.
//
// Pointers are the device's. Operations are enqueued in order and return at once; none allocates.
// Their meaning is that of the function of the same name in trainer/kernels. One thread. Errors are
// exceptions (CudaError), perhaps of a later call.

namespace muster::device {

// What operations of one name took on the device since StartProfile.
struct OpTime {
  std::string name;
  int64_t count;
  double milliseconds;
};

class Ops {
 public:
  virtual ~Ops() = default;

  // Times each operation from now on (a microsecond of overhead each), until TakeProfile, which
  // waits for the device.
  virtual void StartProfile() = 0;
  virtual std::vector<OpTime> TakeProfile() = 0;

  // Memory that lives as long as this object; zeroed.
  virtual std::byte* Allocate(int64_t bytes) = 0;
  // `from` may be reused when Upload returns, not yet when its work is done.
  virtual void Upload(void* to, const void* from, int64_t bytes) = 0;
  // Waits for all work enqueued so far.
  virtual void Download(void* to, const void* from, int64_t bytes) = 0;
  virtual void Copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void Zero(void* to, int64_t bytes) = 0;

  // Before anything else: what products and which attention will be asked for; may take seconds.
  virtual void Prepare(std::span<const fp8::cuda::GemmSpec> products,
                       const kernels::QkvShape& attention, int64_t norm_columns) = 0;
  // Then: how much memory the operations work in, and which.
  virtual int64_t WorkspaceBytes() const = 0;
  virtual void UseWorkspace(std::byte* workspace) = 0;

  // Runs `work`, which enqueues the same operations on the same memory whenever `key` is the same.
  // A GPU may record them once and replay the record.
  virtual void Replay(int key, const std::function<void()>& work) = 0;

  virtual void Gemm(const fp8::cuda::GemmSpec& spec, const fp8::cuda::GemmArguments& arguments) = 0;

  virtual void EmbeddingForward(int64_t rows, int64_t columns, const int64_t* tokens,
                                const Bfloat16* table, Bfloat16* y) = 0;
  virtual void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                                       const int32_t* starts, const int32_t* positions,
                                       const Bfloat16* dy, float* dtable) = 0;
  virtual void RmsNormForward(const kernels::RmsNormShape& shape, const Bfloat16* x,
                              const Bfloat16* weight, Bfloat16* y, float* rstd) = 0;
  virtual void RmsNormFp8(const kernels::RmsNormShape& shape, const Bfloat16* x,
                          const Bfloat16* weight, float* rstd, const kernels::Fp8Output& y) = 0;
  virtual void RmsNormBackward(const kernels::RmsNormShape& shape, const Bfloat16* dy,
                               const Bfloat16* x, const Bfloat16* weight, const float* rstd,
                               Bfloat16* dx, float* dweight) = 0;
  virtual void RmsNormBackwardFp8(const kernels::RmsNormShape& shape, const Bfloat16* dy,
                                  const Bfloat16* x, const Bfloat16* weight, const float* rstd,
                                  Bfloat16* dx, float* dweight,
                                  const kernels::Fp8Output& dx_fp8) = 0;
  virtual void RopePacked(const kernels::QkvShape& shape, const float* cos, const float* sin,
                          Bfloat16* qkv) = 0;
  virtual void RopePackedGradient(const kernels::QkvShape& shape, const float* cos,
                                  const float* sin, Bfloat16* dqkv) = 0;
  virtual void RopePackedGradientFp8(const kernels::QkvShape& shape, const float* cos,
                                     const float* sin, const Bfloat16* dqkv,
                                     const kernels::Fp8Output& out) = 0;
  // Causal attention on packed rows, of the shape given to Prepare. logsumexp: [batch, heads,
  // positions].
  virtual void AttentionForward(const Bfloat16* qkv, Bfloat16* out, float* logsumexp) = 0;
  virtual void AttentionBackward(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                                 const Bfloat16* dout, Bfloat16* dqkv) = 0;
  virtual void SwigluForward(int64_t rows, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y) = 0;
  virtual void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up,
                                const kernels::Fp8Output& y) = 0;
  virtual void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy,
                                   const Bfloat16* gate_up, Bfloat16* dgate_up,
                                   Bfloat16* y_again) = 0;
  virtual void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy,
                                 const Bfloat16* gate_up, const kernels::Fp8Output& dgate_up,
                                 const kernels::Fp8Output& y_again) = 0;
  // Casts with their transposes and amax, as the output asks.
  virtual void CastToFp8(int64_t rows, int64_t columns, const Bfloat16* x,
                         const kernels::Fp8Output& out) = 0;
  virtual void CastToFp8(int64_t rows, int64_t columns, const float* x,
                         const kernels::Fp8Output& out) = 0;
  virtual void CastToBf16(int64_t count, const float* x, Bfloat16* copy) = 0;

  // losses: [rows]; see trainer/kernels/cuda/cross_entropy.h.
  virtual void CrossEntropy(int64_t rows, int64_t vocab, Bfloat16* logits, const int64_t* labels,
                            const float* mask, bool gradient, float* losses) = 0;
  virtual void AddLosses(int64_t rows, const float* losses, const float* mask, double* sums) = 0;

  virtual void UpdateDelayed(const fp8::DelayedRule& rule, int64_t count, const float* reduced_amax,
                             float* scale, float* history) = 0;
  // *scale = CurrentScale(*amax), *amax = 0.
  virtual void TakeCurrentScale(fp8::Format format, float* amax, float* scale) = 0;

  virtual void FillInitial(uint64_t key, double std_dev, int64_t first_index, int64_t count,
                           float* out) = 0;
  virtual void Fill(int64_t count, float value, float* out) = 0;
  virtual void Scale(int64_t count, float factor, float* x) = 0;
  virtual void Scale(int64_t count, float factor, Bfloat16* x) = 0;
  virtual void AddSquares(int64_t count, const float* grad, double* sum) = 0;
  virtual void AddSquares(int64_t count, const Bfloat16* grad, double* sum) = 0;
  virtual void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns,
                        const float* grad, float* master, float* exp_avg, float* exp_avg_sq,
                        const kernels::Fp8Output& weight) = 0;
  virtual void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns,
                        const float* grad, float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                        const kernels::Fp8Output& weight) = 0;
  virtual void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns,
                        const Bfloat16* grad, float* master, float* exp_avg, float* exp_avg_sq,
                        const kernels::Fp8Output& weight) = 0;
  virtual void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns,
                        const Bfloat16* grad, float* master, Bfloat16* exp_avg,
                        Bfloat16* exp_avg_sq, const kernels::Fp8Output& weight) = 0;
  virtual void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad,
                         float* master, float* exp_avg, float* exp_avg_sq, Bfloat16* copy) = 0;
  virtual void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad,
                         float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                         Bfloat16* copy) = 0;
};

}  // namespace muster::device
