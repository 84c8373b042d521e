#include "trainer/optim/gradients.h"

#include <algorithm>
#include <cmath>

#include "trainer/optim/adamw_kernel.h"
#include "trainer/tensor/dtype.h"

namespace muster::optim {

void DivideByTokens(at::Tensor gradients, double tokens) {
  gradients.mul_(1.0 / std::max(tokens, 1.0));
}

double SumOfSquares(const at::Tensor& gradients) {
  return DispatchFloating(gradients.scalar_type(), [&]<typename T>(std::type_identity<T>) {
    return SumOfSquares(gradients.numel(), Data<const T>(gradients));
  });
}

double GradientNorm(const at::Tensor& gradients) {
  return std::sqrt(SumOfSquares(gradients));
}

double ClipCoefficient(double norm, double max_norm) {
  if (max_norm <= 0) return 1;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace muster::optim
