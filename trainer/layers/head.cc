#include "trainer/layers/head.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>

#include "trainer/layers/linear.h"
#include "trainer/layers/loss.h"
#include "trainer/tensor/dtype.h"

namespace muster::layers {
namespace {

constexpr int64_t kTokensAtATime = 1024;

}  // namespace

at::Tensor Head::Logits(Context& ctx, const at::Tensor& x_TC) {
  return at::mm(x_TC, weight_->Get(ctx).t());
}

kernels::CrossEntropySum Head::Forward(Context& ctx, const at::Tensor& x_TC,
                                       const Targets& targets) {
  const at::Tensor all_TC = ctx.tensor().Enter(x_TC);
  const int64_t tokens = all_TC.size(0);
  const at::Tensor labels_T = targets.labels_BS.view({-1}), mask_T = targets.mask_BS.view({-1});
  const at::Tensor weight_VC = weight_->Get(ctx);
  const at::Tensor dx_TC = ctx.training() ? at::empty_like(all_TC) : at::Tensor();
  // One micro-batch's gradient is rounded once: whole in the main gradient's own type, or first
  // summed here.
  const at::Tensor dweight_VC =
      ctx.training() && weight_->gradient().scalar_type() != AccumulateType(x_TC.scalar_type())
          ? at::zeros_like(weight_VC, AccumulateType(x_TC.scalar_type()))
          : weight_->gradient();
  kernels::CrossEntropySum total;
  for (int64_t start = 0; start < tokens; start += kTokensAtATime) {
    const int64_t rows = std::min(kTokensAtATime, tokens - start);
    const at::Tensor x = all_TC.narrow(0, start, rows);
    at::Tensor logits = Logits(ctx, x);
    const kernels::CrossEntropySum sum =
        CrossEntropy(ctx.tensor(), logits, labels_T.narrow(0, start, rows),
                     mask_T.narrow(0, start, rows), ctx.training());
    total.loss += sum.loss;
    total.tokens += sum.tokens;
    if (!ctx.training()) continue;
    if (targets.weight != 1) logits.mul_(targets.weight);
    at::Tensor dx = dx_TC.narrow(0, start, rows);
    at::mm_out(dx, logits, weight_VC);
    AddWeightGradient(logits, x, dweight_VC);
  }
  if (!ctx.training()) return total;
  if (!dweight_VC.is_same(weight_->gradient())) weight_->AddGradient(dweight_VC);
  ctx.Save(dx_TC);
  return total;
}

}  // namespace muster::layers
