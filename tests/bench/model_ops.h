#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/device_buffer.h"
#include "trainer/fp8/cuda/gemms.h"
#include "trainer/fp8/cuda/linear_gemms.h"
#include "trainer/kernels/cuda/attention.h"

// The matrix products and the attention of Llama-3-8B on random operands: one layer's worth of
// memory, used again for every layer.

namespace muster::bench {

inline constexpr int64_t kTokens = 8192;
inline constexpr int kLayers = 32;
inline constexpr int64_t kHidden = 4096, kFfn = 14336, kHeads = 32, kGroups = 8, kHeadDim = 128;
inline constexpr int64_t kVocabulary = 128256;

// One linear layer's three products with operands of their own.
class LinearOps {
 public:
  LinearOps(std::string name, const fp8::cuda::LinearGemms& gemms, bool fp8, cudaStream_t stream);

  const std::string& name() const { return name_; }
  const fp8::cuda::LinearGemms& gemms() const { return gemms_; }
  // The same products with other options; operands and results stay.
  void Use(const fp8::cuda::LinearGemms& gemms) { gemms_ = gemms; }

  void Forward(const fp8::cuda::Gemms& plans, void* workspace, cudaStream_t stream) const;
  void InputGradient(const fp8::cuda::Gemms& plans, void* workspace, cudaStream_t stream) const;
  void WeightGradient(const fp8::cuda::Gemms& plans, void* workspace, cudaStream_t stream) const;

 private:
  // Two operands and a result; for bf16 the operands of the three products are shared.
  struct Operands {
    std::shared_ptr<DeviceBuffer> left, right, out;
  };
  static fp8::cuda::GemmArguments Arguments(const Operands& operands, const float* scales);

  std::string name_;
  fp8::cuda::LinearGemms gemms_;
  Operands forward_, input_gradient_, weight_gradient_;
  DeviceBuffer scales_;
};

// The tensors of one attention call.
class AttentionOps {
 public:
  AttentionOps(const kernels::cuda::AttentionSpec& spec, cudaStream_t stream);

  void Forward(const kernels::cuda::AttentionPlan& plan, void* workspace,
               cudaStream_t stream) const;
  void Backward(const kernels::cuda::AttentionPlan& plan, void* workspace,
                cudaStream_t stream) const;

 private:
  DeviceBuffer qkv_, dqkv_, out_, dout_, logsumexp_;
};

// The sizes of a layer's four linears, by name.
struct NamedShape {
  const char* name;
  fp8::cuda::LinearShape shape;
};
inline constexpr std::array<NamedShape, 4> kLinears = {{
    {"qkv", {kTokens, (kHeads + 2 * kGroups) * kHeadDim, kHidden}},
    {"proj", {kTokens, kHidden, kHeads* kHeadDim}},
    {"fc1", {kTokens, 2 * kFfn, kHidden}},
    {"fc2", {kTokens, kHidden, kFfn}},
}};
inline constexpr fp8::cuda::LinearShape kHead{kTokens, kVocabulary, kHidden};

// Floating point operations of one causal forward (backward: 2.5 times that).
constexpr double AttentionFlops(const kernels::cuda::AttentionSpec& s) {
  return 2.0 * static_cast<double>(s.batch * s.heads * s.head_dim) *
         static_cast<double>(s.positions) * static_cast<double>(s.positions);
}

}  // namespace muster::bench
