#include "trainer/fp8/quantized_tensor.h"

#include <ATen/ops/empty.h>

#include "trainer/fp8/scaling.h"
#include "trainer/kernels/fp8_cast.h"
#include "trainer/tensor/dtype.h"

namespace muster::fp8 {

QuantizedTensor Quantize(const at::Tensor& x, float scale, Format format) {
  QuantizedTensor q;
  q.format = format;
  q.codes = at::empty(x.sizes(), at::kByte);
  q.values = at::empty(x.sizes(), AccumulateType(x.scalar_type()));
  q.scale_inv = at::empty({1}, at::kFloat);
  *Data<float>(q.scale_inv) = ScaleInverse(scale);
  DispatchFloating(x.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    kernels::CastToFp8(x.numel(), Data<T>(x), scale, format, Data<uint8_t>(q.codes),
                       Data<Accumulate<T>>(q.values));
  });
  return q;
}

float Amax(const at::Tensor& x) {
  return DispatchFloating(x.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    return kernels::Amax(x.numel(), Data<T>(x));
  });
}

}  // namespace muster::fp8
