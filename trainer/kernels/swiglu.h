#pragma once

#include <cstdint>

#include "trainer/tensor/bfloat16.h"

// SwiGLU on the packed output of fc1: each row of gate_up is [gate (F), up (F)]; y = silu(gate) *
// up.

namespace muster::kernels {

template <typename T>
void SwigluForward(int64_t rows, int64_t ffn, const T* gate_up, T* y);

// Overwrites dgate_up (same shape as gate_up; may be gate_up itself).
template <typename T>
void SwigluBackward(int64_t rows, int64_t ffn, const T* dy, const T* gate_up, T* dgate_up);

}  // namespace muster::kernels
