#include "trainer/kernels/fp8_cast.h"

#include <bit>

#include "trainer/kernels/cpu/vectorize.h"

namespace muster::kernels {
namespace {

// Floats without their sign are ordered as their bits are; NaN, above infinity, becomes 0.
template <typename T>
inline int32_t MagnitudeBits(T x) {
  const int32_t bits = std::bit_cast<int32_t>(static_cast<float>(x)) & 0x7fffffff;
  return bits > 0x7f800000 ? 0 : bits;
}

template <typename T>
MUSTER_VECTORIZE int32_t LargestMagnitude(int64_t count, const T* x) {
  return MaxInLanes<int32_t>(count, [x](int64_t i) { return MagnitudeBits(x[i]); });
}

template <fp8::Format kFormat, typename T>
MUSTER_VECTORIZE void Cast(int64_t count, const T* x, float scale, uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) {
    codes[i] = fp8::Round<kFormat>(static_cast<float>(x[i]) * scale).code;
  }
}

template <fp8::Format kFormat, typename T>
MUSTER_VECTORIZE void CastAndDecode(int64_t count, const T* x, float scale, uint8_t* codes,
                                    Accumulate<T>* values) {
  for (int64_t i = 0; i < count; ++i) {
    const fp8::Rounded rounded = fp8::Round<kFormat>(static_cast<float>(x[i]) * scale);
    codes[i] = rounded.code;
    values[i] = static_cast<Accumulate<T>>(rounded.value);
  }
}

template <fp8::Format kFormat, typename T>
void CastAs(int64_t count, const T* x, float scale, uint8_t* codes, Accumulate<T>* values) {
  if (values == nullptr) {
    Cast<kFormat>(count, x, scale, codes);
  } else {
    CastAndDecode<kFormat>(count, x, scale, codes, values);
  }
}

}  // namespace

template <typename T>
float Amax(int64_t count, const T* x) {
  return count == 0 ? 0.0f : std::bit_cast<float>(LargestMagnitude(count, x));
}

template <typename T>
void CastToFp8(int64_t count, const T* x, float scale, fp8::Format format, uint8_t* codes,
               Accumulate<T>* values) {
  if (format == fp8::Format::kE4m3) {
    CastAs<fp8::Format::kE4m3>(count, x, scale, codes, values);
  } else {
    CastAs<fp8::Format::kE5m2>(count, x, scale, codes, values);
  }
}

#define MUSTER_INSTANTIATE(T)             \
  template float Amax(int64_t, const T*); \
  template void CastToFp8(int64_t, const T*, float, fp8::Format, uint8_t*, Accumulate<T>*);
MUSTER_INSTANTIATE(float)
MUSTER_INSTANTIATE(double)
MUSTER_INSTANTIATE(Bfloat16)
#undef MUSTER_INSTANTIATE

}  // namespace muster::kernels
