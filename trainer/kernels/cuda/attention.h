#pragma once

#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "trainer/tensor/bfloat16.h"

// Causal attention in bf16 on the GPU, by cuDNN, with fewer KV heads (G) than query heads (H);
// scores are scaled by 1 / sqrt(D). qkv and dqkv are packed: each token has a row of (H + 2G) * D
// elements, first all query heads, then all K heads, then all V heads (qkv_packing.h maps
// Megatron's rows to these). out and dout are [B, S, H, D], logsumexp is fp32 [B, H, S]. All
// pointers are device memory.

namespace muster::kernels::cuda {

struct AttentionSpec {
  int64_t batch, positions, heads, kv_heads, head_dim;
  // Backward gives the same bits each time. Costs time and, for each sequence, H * S * S * 2 bytes
  // of workspace.
  bool deterministic = false;

  auto operator<=>(const AttentionSpec&) const = default;
  int64_t RowElements() const { return (heads + 2 * kv_heads) * head_dim; }  // of qkv
};

// "causal attention, batch 1, 8192 positions, 32:8 heads of 128"
std::string ToString(const AttentionSpec& spec);

// Forward and backward for one spec. No call allocates or synchronises; all can be captured into a
// CUDA graph. One thread at a time (plans of one Attention share its cuDNN handle).
class AttentionPlan {
 public:
  virtual ~AttentionPlan() = default;

  // Bytes that both directions need, to be passed in with each call; contents need not survive.
  virtual int64_t WorkspaceBytes() const = 0;

  virtual void Forward(const Bfloat16* qkv, Bfloat16* out, float* logsumexp, void* workspace,
                       cudaStream_t stream) const = 0;
  // Writes every element of dqkv.
  virtual void Backward(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                        const Bfloat16* dout, Bfloat16* dqkv, void* workspace,
                        cudaStream_t stream) const = 0;
  // Which of cuDNN's plans were chosen, and their times where they were measured.
  virtual std::string Describe() const = 0;
};

// Makes plans on the current device and keeps them while it lives. One thread. Throws CudaError.
class Attention {
 public:
  Attention();
  ~Attention();
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  // The plan for `spec`: made at the first request (seconds), the same one later. With device
  // memory for `scratch` every plan that cuDNN offers and that fits is timed there and the fastest
  // taken; without, cuDNN's first choice. Work in `stream` is waited for.
  const AttentionPlan& Plan(const AttentionSpec& spec, std::span<std::byte> scratch,
                            cudaStream_t stream);
  // Scratch for timing plans whose workspace is `workspace_bytes` or less.
  static int64_t ScratchBytes(const AttentionSpec& spec, int64_t workspace_bytes);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
  std::map<AttentionSpec, std::unique_ptr<AttentionPlan>> plans_;
};

}  // namespace muster::kernels::cuda
