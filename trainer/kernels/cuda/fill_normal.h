#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trainer/fp8/formats.h"
#include "trainer/tensor/bfloat16.h"

// Normal random numbers with mean 0 on the GPU, the same ones for the same seed: operands for
// choosing algorithms and for measurements, since speed depends on the data (power), and zeros or
// constants mislead. Launch errors are left for cudaGetLastError.

namespace muster::kernels::cuda {

void FillNormal(float* data, int64_t count, float standard_deviation, uint64_t seed,
                cudaStream_t stream);
void FillNormal(Bfloat16* data, int64_t count, float standard_deviation, uint64_t seed,
                cudaStream_t stream);
// FP8 codes of such numbers (saturating).
void FillNormal(uint8_t* codes, fp8::Format format, int64_t count, float standard_deviation,
                uint64_t seed, cudaStream_t stream);

// The standard deviation that normal numbers have after scaling their largest magnitude (5.5
// standard deviations in tens of millions) to the format's largest value.
constexpr float ScaledDeviation(fp8::Format format) {
  return fp8::MaxFinite(format) / 5.5f;
}

}  // namespace muster::kernels::cuda
