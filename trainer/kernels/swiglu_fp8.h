#pragma once

#include <cstdint>

#include "trainer/kernels/fp8_output.h"
#include "trainer/tensor/bfloat16.h"

// SwiGLU (see swiglu.h) with its result in FP8, as the next product takes it.

namespace muster::kernels {

// y [rows, ffn] = silu(gate) * up of gate_up [rows, 2 ffn].
void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y);

// dgate_up [rows, 2 ffn], one tensor with one scale, from dy [rows, ffn].
void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up);

}  // namespace muster::kernels
