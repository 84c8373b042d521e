#pragma once

#include <cstdint>

#include "trainer/kernels/fp8_output.h"
#include "trainer/tensor/bfloat16.h"

// SwiGLU (see swiglu.h) with its result in FP8, as the next product takes it.

namespace muster::kernels {

// y [rows, ffn] = silu(gate) * up of gate_up [rows, 2 ffn].
void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y);

// dgate_up [rows, 2 ffn], one tensor with one scale, from dy [rows, ffn]. `y_again`: y itself once
// more, in e4m3, as the forward gave it with the same scale (for the weight's gradient, so that
// nobody has to keep it); all its pointers null: not wanted.
void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up, const Fp8Output& y_again);

// Both gradients in bf16: dgate_up may be gate_up itself; y_again may be null.
void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         Bfloat16* dgate_up, Bfloat16* y_again);

}  // namespace muster::kernels
