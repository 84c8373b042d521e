#pragma once

#include <cuda_runtime_api.h>

#include "trainer/kernels/swiglu_fp8.h"

// SwiGLU into FP8 on the GPU: as trainer/kernels/swiglu_fp8.h, with device pointers and a stream,
// in one pass over the input. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up, const Fp8Output& y,
                      cudaStream_t stream);

void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                       const Fp8Output& dgate_up, const Fp8Output& y_again, cudaStream_t stream);

// The same in bf16.
void SwigluForward(int64_t rows, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y,
                   cudaStream_t stream);
void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         Bfloat16* dgate_up, Bfloat16* y_again, cudaStream_t stream);

}  // namespace muster::kernels::cuda
