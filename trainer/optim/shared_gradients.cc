#include "trainer/optim/shared_gradients.h"

#include <ATen/ops/cat.h>

#include "trainer/optim/gradients.h"

namespace muster::optim {
namespace {

// One message for all of them.
void SumOver(parallel::Communicator& group, const std::vector<at::Tensor>& gradients) {
  if (group.size() == 1 || gradients.empty()) return;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& gradient : gradients) flat.push_back(gradient.view({-1}));
  const at::Tensor sums = at::cat(flat);
  group.AllReduce(sums, parallel::ReduceOp::kSum);
  int64_t start = 0;
  for (at::Tensor& gradient : flat) {
    gradient.copy_(sums.narrow(0, start, gradient.numel()));
    start += gradient.numel();
  }
}

}  // namespace

void SumSharedGradients(const parallel::Groups& groups, std::vector<model::Parameter>& parameters) {
  std::vector<at::Tensor> partial;
  for (const model::Parameter& parameter : parameters) {
    if (parameter.partial) partial.push_back(parameter.grad);
    if (parameter.tied && groups.embedding) {
      groups.embedding->AllReduce(parameter.grad, parallel::ReduceOp::kSum);
    }
  }
  SumOver(*groups.tensor, partial);
}

double SquaredNorm(const std::vector<model::Parameter>& parameters) {
  double sum = 0;
  for (const model::Parameter& parameter : parameters) {
    if (!parameter.duplicate) sum += SumOfSquares(parameter.grad);
  }
  return sum;
}

}  // namespace muster::optim
