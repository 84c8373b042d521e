#include "trainer/layers/context_attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <functional>
#include <limits>
#include <vector>

#include "trainer/tensor/dtype.h"

namespace muster::layers {
namespace {

// One of the two halves of what a rank has of a sequence.
at::Tensor Half(const at::Tensor& x, int64_t half, int64_t dim) {
  const int64_t length = x.size(dim) / 2;
  return x.narrow(dim, half * length, length);
}

// Calls use(query half, key half, causal) for those halves of this rank's queries and of `source`'s
// keys that meet: a chunk sees all of those before it, and itself up to the diagonal.
void ForEachPair(const ContextParallel& context, int64_t source,
                 const std::function<void(int64_t, int64_t, bool)>& use) {
  const auto queries = ContextParallel::ChunksOf(context.rank(), context.size());
  const auto keys = ContextParallel::ChunksOf(source, context.size());
  for (int64_t q = 0; q < 2; ++q) {
    for (int64_t k = 0; k < 2; ++k) {
      const int64_t query = queries[static_cast<size_t>(q)], key = keys[static_cast<size_t>(k)];
      if (key <= query) use(q, k, key == query);
    }
  }
}

int64_t Next(const ContextParallel& context) {
  return (context.rank() + 1) % context.size();
}
int64_t Before(const ContextParallel& context, int64_t steps = 1) {
  return (context.rank() + context.size() - steps) % context.size();
}

// The keys and values of every rank, [size, 2, ...].
at::Tensor GatherAll(const ContextParallel& context, const at::Tensor& kv) {
  std::vector<int64_t> shape = kv.sizes().vec();
  shape.insert(shape.begin(), context.size());
  const at::Tensor all = at::empty(shape, kv.options());
  context.group()->AllGather(all, kv);
  return all;
}

// Calls visit(source, its [2, ...] keys and values) for every rank, beginning with this one. In the
// ring the caller flushes: what `visit` posts may be received only after the last visit.
void ForEachSource(const ContextParallel& context, const at::Tensor& kv,
                   const std::function<void(int64_t, const at::Tensor&)>& visit) {
  if (context.exchange() == ContextExchange::kAllGather) {
    const at::Tensor all = GatherAll(context, kv);
    for (int64_t step = 0; step < context.size(); ++step) {
      visit(Before(context, step), all[Before(context, step)]);
    }
    return;
  }
  at::Tensor here = kv;
  for (int64_t step = 0; step < context.size(); ++step) {
    const bool last = step + 1 == context.size();
    if (!last) context.group()->Post(here, Next(context));
    visit(Before(context, step), here);
    if (last) break;
    const at::Tensor next = at::empty_like(here);
    context.group()->Receive(next, Before(context));
    here = next;
  }
}

// The gradients of every rank's keys and values, [size, 2, ...] by source, summed over the ranks:
// this rank's.
at::Tensor ReduceAll(const ContextParallel& context, const at::Tensor& all) {
  const at::Tensor mine = at::empty_like(all[0]);
  context.group()->ReduceScatter(mine, all);
  return mine;
}

// The sum of what every rank adds to the gradient of this rank's keys and values, in the ring:
// the sums travel with the keys and values, one step behind.
class TravellingGradient {
 public:
  explicit TravellingGradient(const ContextParallel& context) : context_(context) {}

  // This rank's part for the source whose turn it is.
  void Add(at::Tensor part) {
    if (started_) {
      const at::Tensor sum = at::empty_like(part);
      context_.group()->Receive(sum, Before(context_));
      part.add_(sum);
    }
    started_ = true;
    last_ = part;
    context_.group()->Post(part, Next(context_));
  }
  // After one part for each rank.
  at::Tensor Finish() {
    const at::Tensor mine = at::empty_like(last_);
    context_.group()->Receive(mine, Before(context_));
    context_.group()->Flush();
    return mine;
  }

 private:
  const ContextParallel& context_;
  bool started_ = false;
  at::Tensor last_;
};

// One half of the queries' result, as the kernel gave it.
kernels::AttentionResult HalfOf(const kernels::AttentionResult& result, int64_t half) {
  const at::Tensor logsumexp_BSH = Half(result.logsumexp, half, 2).transpose(1, 2).contiguous();
  return {Half(result.out_BSHD, half, 1), logsumexp_BSH.transpose(1, 2)};
}

}  // namespace

kernels::AttentionResult ContextAttentionForward(const ContextParallel& context,
                                                 const at::Tensor& q_BSHD, const at::Tensor& k_BSGD,
                                                 const at::Tensor& v_BSGD) {
  const at::ScalarType sum = AccumulateType(q_BSHD.scalar_type());
  const int64_t B = q_BSHD.size(0), S = q_BSHD.size(1), H = q_BSHD.size(2);
  const at::Tensor out_BSHD = at::zeros(q_BSHD.sizes(), sum);
  const at::Tensor logsumexp_BSH = at::empty({B, S, H}, sum);
  logsumexp_BSH.fill_(-std::numeric_limits<double>::infinity());
  ForEachSource(context, at::stack({k_BSGD, v_BSGD}), [&](int64_t source, const at::Tensor& kv) {
    ForEachPair(context, source, [&](int64_t q, int64_t k, bool causal) {
      const kernels::AttentionResult part = kernels::AttentionForward(
          Half(q_BSHD, q, 1), Half(kv[0], k, 1), Half(kv[1], k, 1), causal);
      at::Tensor out = Half(out_BSHD, q, 1), logsumexp = Half(logsumexp_BSH, q, 1);
      const at::Tensor of_part = part.logsumexp.transpose(1, 2);
      const at::Tensor both = at::logaddexp(logsumexp, of_part);
      out.mul_(logsumexp.sub(both).exp_().unsqueeze(-1));
      out.add_(part.out_BSHD.to(sum).mul_(of_part.sub(both).exp_().unsqueeze(-1)));
      logsumexp.copy_(both);
    });
  });
  context.group()->Flush();
  return {out_BSHD.to(q_BSHD.scalar_type()), logsumexp_BSH.transpose(1, 2)};
}

kernels::AttentionGradient ContextAttentionBackward(
    const ContextParallel& context, const at::Tensor& dout_BSHD, const at::Tensor& q_BSHD,
    const at::Tensor& k_BSGD, const at::Tensor& v_BSGD, const kernels::AttentionResult& result) {
  const at::ScalarType sum = AccumulateType(q_BSHD.scalar_type());
  const bool ring = context.exchange() == ContextExchange::kRing;
  const at::Tensor dq_BSHD = at::zeros(q_BSHD.sizes(), sum);
  const at::Tensor kv = at::stack({k_BSGD, v_BSGD});
  std::vector<int64_t> shape = kv.sizes().vec();
  shape.insert(shape.begin(), context.size());
  const at::Tensor all_dkv = ring ? at::Tensor() : at::zeros(shape, sum);
  TravellingGradient travelling(context);
  ForEachSource(context, kv, [&](int64_t source, const at::Tensor& theirs) {
    const at::Tensor dkv = ring ? at::zeros(kv.sizes(), sum) : all_dkv[source];
    ForEachPair(context, source, [&](int64_t q, int64_t k, bool causal) {
      const kernels::AttentionGradient part = kernels::AttentionBackward(
          Half(dout_BSHD, q, 1), Half(q_BSHD, q, 1), Half(theirs[0], k, 1), Half(theirs[1], k, 1),
          HalfOf(result, q), causal);
      Half(dq_BSHD, q, 1).add_(part.dq_BSHD);
      Half(dkv[0], k, 1).add_(part.dk_BSGD);
      Half(dkv[1], k, 1).add_(part.dv_BSGD);
    });
    if (ring) travelling.Add(dkv);
  });
  const at::Tensor dkv = ring ? travelling.Finish() : ReduceAll(context, all_dkv);
  const at::ScalarType type = q_BSHD.scalar_type();
  return {dq_BSHD.to(type), dkv[0].to(type), dkv[1].to(type)};
}

}  // namespace muster::layers
