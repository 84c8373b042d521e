#pragma once

#include <ATen/core/Tensor.h>

#include <stdexcept>
#include <string>
#include <type_traits>

#include "trainer/config/model_config.h"
#include "trainer/tensor/bfloat16.h"

// Element types at the border between LibTorch tensors and kernels on raw pointers.

namespace muster {

inline at::ScalarType ToScalarType(config::DType dtype) {
  switch (dtype) {
    case config::DType::kBf16:
      return at::kBFloat16;
    case config::DType::kFp64:
      return at::kDouble;
    case config::DType::kFp32:
      break;
  }
  return at::kFloat;
}

// What sums over `dtype` are kept in; see Accumulate<T>.
inline at::ScalarType AccumulateType(at::ScalarType dtype) {
  return dtype == at::kDouble ? at::kDouble : at::kFloat;
}

// The elements of a contiguous tensor. T must be the tensor's element type (not checked).
template <typename T>
T* Data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

// Calls `function(std::type_identity<T>())` with T = float, double or Bfloat16.
template <typename Function>
decltype(auto) DispatchFloating(at::ScalarType dtype, Function&& function) {
  switch (dtype) {
    case at::kFloat:
      return function(std::type_identity<float>());
    case at::kDouble:
      return function(std::type_identity<double>());
    case at::kBFloat16:
      return function(std::type_identity<Bfloat16>());
    default:
      throw std::invalid_argument(std::string("expected fp32, fp64 or bf16, not ") +
                                  c10::toString(dtype));
  }
}

}  // namespace muster
