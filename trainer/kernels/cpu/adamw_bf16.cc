#include "trainer/kernels/adamw_bf16.h"

#include <vector>

namespace muster::kernels {

template <typename M>
void AdamWBf16(const AdamWRule& rule, int64_t count, const float* grad, float* master, M* exp_avg,
               M* exp_avg_sq, Bfloat16* copy) {
  float amax = 0;
  AdamWFp8(rule, 1, count, grad, master, exp_avg, exp_avg_sq,
           Fp8Output{}.OnlyAmax(&amax));  // the step alone
  for (int64_t i = 0; i < count; ++i) copy[i] = Bfloat16(master[i]);
}

template void AdamWBf16(const AdamWRule&, int64_t, const float*, float*, float*, float*, Bfloat16*);
template void AdamWBf16(const AdamWRule&, int64_t, const float*, float*, Bfloat16*, Bfloat16*,
                        Bfloat16*);

}  // namespace muster::kernels
