#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/fp8/gemm.h"
#include "trainer/fp8/recipe.h"
#include "trainer/layers/context_parallel.h"
#include "trainer/layers/tensor_parallel.h"

namespace muster::layers {

// What the layers of one stage share: constant while it lives, but for the recipe's scales.
struct Numerics {
  at::ScalarType compute;         // of activations and of the weights as the layers use them
  bool round_weights_to_bf16;     // weights pass through bf16 before use
  fp8::Recipe* recipe = nullptr;  // null: linears multiply in the compute type
  fp8::Gemm gemm;
  TensorParallel tensor = {};
  ContextParallel context = {};
};

// How a micro-batch's tokens stand to each other, where rows are not simply positions 0 .. S-1 that
// attention sees whole.
struct Packing {
  at::Tensor cos_TD, sin_TD;  // angles of each token; undefined: those of its place in its row
  std::vector<int32_t> cu_seqlens;  // segments of attention; empty: rows
};

// One micro-batch on its way through the layers. Forward pushes what backward needs, backward pops
// it in reverse, so a layer itself holds nothing of a micro-batch and several may be in flight.
// Without `training` nothing is kept and no scaling state changes.
class Context {
 public:
  Context(const Numerics& numerics, bool training, int64_t batch, int64_t positions,
          Packing packing = {})
      : numerics_(numerics),
        training_(training),
        batch_(batch),
        positions_(positions),
        packing_(std::move(packing)) {}

  const Numerics& numerics() const { return numerics_; }
  const TensorParallel& tensor() const { return numerics_.tensor; }
  bool training() const { return training_; }
  int64_t batch() const { return batch_; }          // B
  int64_t positions() const { return positions_; }  // S; activations have T = B * S rows

  const Packing& packing() const { return packing_; }

  void Save(at::Tensor tensor) {
    if (training_) tensors_.push_back(std::move(tensor));
  }
  void Save(fp8::QuantizedTensor tensor) {
    if (training_) quantized_.push_back(std::move(tensor));
  }
  at::Tensor Restore() { return Pop(tensors_); }
  fp8::QuantizedTensor RestoreQuantized() { return Pop(quantized_); }

 private:
  template <typename T>
  static T Pop(std::vector<T>& stack) {
    T top = std::move(stack.back());
    stack.pop_back();
    return top;
  }

  const Numerics& numerics_;
  const bool training_;
  const int64_t batch_;
  const int64_t positions_;
  const Packing packing_;
  std::vector<at::Tensor> tensors_;
  std::vector<fp8::QuantizedTensor> quantized_;
};

}  // namespace muster::layers
