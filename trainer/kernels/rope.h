#pragma once

#include <cstdint>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/tensor/bfloat16.h"

// Rotary position embedding, the half-rotating form of Hugging Face and Megatron: element d of a
// head is paired with element d + D/2. The kernels also unpack: qkv holds, for each token and query
// group, [q ... q, k, v] heads as Megatron's linear_qkv gives them, attention wants q, k and v by
// themselves.

namespace muster::kernels {

// D/2 frequencies, with Llama-3.1's scaling when it is enabled. In fp32 throughout, as in Hugging
// Face and Megatron: at position 1000 exact angles would differ from theirs by 1e-4.
std::vector<float> RopeFrequencies(int64_t head_dim, double base,
                                   const config::RopeScaling& scaling);

// cos and sin of the fp32 angles position * frequency, [positions, D/2] each.
template <typename A>
struct RopeTable {
  std::vector<A> cos, sin;
};
template <typename A>
RopeTable<A> MakeRopeTable(int64_t positions, const std::vector<float>& frequencies);

struct QkvShape {
  int64_t batch;
  int64_t positions;
  int64_t groups;           // KV heads
  int64_t heads_per_group;  // query heads of one group
  int64_t head_dim;
};

// q, k rotated and v copied out of qkv. q: [B, S, groups * heads_per_group, D]; k, v: [B, S,
// groups, D].
template <typename T>
void RopeUnpack(const QkvShape& shape, const Accumulate<T>* cos, const Accumulate<T>* sin,
                const T* qkv, T* q, T* k, T* v);

// The reverse for gradients: rotates dq, dk back and packs dq, dk, dv into dqkv.
template <typename T>
void RopePackGradient(const QkvShape& shape, const Accumulate<T>* cos, const Accumulate<T>* sin,
                      const T* dq, const T* dk, const T* dv, T* dqkv);

}  // namespace muster::kernels
