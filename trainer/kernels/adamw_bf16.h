#pragma once

#include "trainer/kernels/adamw_fp8.h"

namespace muster::kernels {

// The step of AdamWFp8 on weights that are used in bf16: `copy` becomes the master, rounded.
template <typename M>
void AdamWBf16(const AdamWRule& rule, int64_t count, const float* grad, float* master, M* exp_avg,
               M* exp_avg_sq, Bfloat16* copy);

}  // namespace muster::kernels
