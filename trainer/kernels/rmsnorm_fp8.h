#pragma once

#include "trainer/kernels/fp8_output.h"
#include "trainer/kernels/rmsnorm.h"
#include "trainer/tensor/bfloat16.h"

// RMSNorm between bf16 and FP8; see rmsnorm.h.

namespace muster::kernels {

// y = the norm of x, in FP8. rstd: [rows].
void RmsNormFp8(const RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight, float* rstd,
                const Fp8Output& y);

// RmsNormBackward, and then the new dx once more in FP8: the codes and amax of its bf16 values.
void RmsNormBackwardFp8(const RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                        const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                        const Fp8Output& dx_fp8);

}  // namespace muster::kernels
