#include "trainer/engine/cpu_optimizer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <cmath>

#include "trainer/optim/gradients.h"
#include "trainer/optim/parts.h"
#include "trainer/optim/shared_gradients.h"

namespace muster::engine {
namespace {

constexpr std::array<const char*, 2> kMoments = {".exp_avg", ".exp_avg_sq"};

}  // namespace

bool CpuOptimizer::IsDistributed(const config::TrainConfig& config,
                                 const parallel::Groups& groups) {
  return config.use_distributed_optimizer && groups.data_context->size() > 1;
}

int64_t CpuOptimizer::Padding(const config::TrainConfig& config, const parallel::Groups& groups) {
  return IsDistributed(config, groups) ? groups.data_context->size() : 1;
}

CpuOptimizer::CpuOptimizer(const config::TrainConfig& config, const parallel::Groups& groups,
                           model::Llama* model)
    : groups_(groups), model_(*model), distributed_(IsDistributed(config, groups)) {
  length_ = model_.value_buffer().numel() / Padding(config, groups);
  if (distributed_) {
    begin_ = groups.data_context->rank() * length_;
    owned_ = optim::PartsWithin(model_.parameters(), begin_, begin_ + length_);
  } else {
    owned_ = model_.parameters();
  }
  adam_ = std::make_unique<optim::AdamW>(&owned_,
                                         optim::AdamWConfig{.beta1 = config.adam_beta1,
                                                            .beta2 = config.adam_beta2,
                                                            .epsilon = config.adam_eps,
                                                            .weight_decay = config.weight_decay});
}

void CpuOptimizer::ReduceGradients() {
  optim::SumSharedGradients(groups_, model_.parameters());
  const at::Tensor gradients = model_.gradient_buffer();
  if (!distributed_) {
    groups_.data_context->AllReduce(gradients, parallel::ReduceOp::kSum);
    return;
  }
  const at::Tensor sums = at::empty({length_}, gradients.options());
  groups_.data_context->ReduceScatter(sums, gradients);
  Mine(gradients).copy_(sums);
}

double CpuOptimizer::Normalize(double tokens) {
  if (tokens != 1) optim::DivideByTokens(Mine(model_.gradient_buffer()), tokens);
  const at::Tensor sum = at::scalar_tensor(optim::SquaredNorm(owned_), at::kDouble);
  (distributed_ ? *groups_.world : *groups_.model).AllReduce(sum, parallel::ReduceOp::kSum);
  return std::sqrt(sum.item<double>());
}

std::string CpuOptimizer::NonFiniteGradient() const {
  for (const model::Parameter& parameter : owned_) {
    if (!at::isfinite(parameter.grad).all().item<bool>()) return parameter.name;
  }
  return "";
}

void CpuOptimizer::Step(const optim::LearningRates& rates, double coefficient) {
  adam_->Step(rates, coefficient);
  if (distributed_) {
    const at::Tensor values = model_.value_buffer();
    groups_.data_context->AllGather(values, Mine(values).clone());
  }
  // The copies lie in different places of their stages' buffers, and so their gradients were summed
  // in different orders: without this they would part, a rounding at a time.
  for (const model::Parameter& parameter : model_.parameters()) {
    if (parameter.tied) groups_.embedding->Broadcast(parameter.value, 0);
  }
}

std::vector<std::pair<std::string, at::Tensor>> CpuOptimizer::FetchMoments() {
  std::vector<std::pair<std::string, at::Tensor>> mine = adam_->State();
  if (!distributed_) return mine;
  std::array<at::Tensor, 2> whole;
  for (size_t kind = 0; kind < whole.size(); ++kind) {
    const at::Tensor piece = at::zeros({length_}, model_.value_buffer().options());
    int64_t start = 0;
    for (size_t i = kind; i < mine.size(); i += whole.size()) {
      piece.narrow(0, start, mine[i].second.numel()).copy_(mine[i].second);
      start += mine[i].second.numel();
    }
    whole[kind] = at::empty(model_.value_buffer().sizes(), piece.options());
    groups_.data_context->AllGather(whole[kind], piece);
  }
  std::vector<std::pair<std::string, at::Tensor>> moments;
  int64_t start = 0;
  for (const model::Parameter& parameter : model_.parameters()) {
    const int64_t count = parameter.value.numel();
    for (size_t kind = 0; kind < whole.size(); ++kind) {
      moments.emplace_back(parameter.name + kMoments[kind],
                           whole[kind].narrow(0, start, count).view(parameter.value.sizes()));
    }
    start += count;
  }
  return moments;
}

void CpuOptimizer::StoreMoments(const std::vector<std::pair<std::string, at::Tensor>>& moments) {
  if (!distributed_) return;  // live views
  const std::vector<std::pair<std::string, at::Tensor>> mine = adam_->State();
  for (size_t kind = 0; kind < kMoments.size(); ++kind) {
    const at::Tensor whole =
        at::zeros(model_.value_buffer().sizes(), model_.value_buffer().options());
    int64_t start = 0;
    for (size_t i = kind; i < moments.size(); i += kMoments.size()) {
      const at::Tensor& moment = moments[i].second;
      whole.narrow(0, start, moment.numel()).copy_(moment.reshape({-1}));
      start += moment.numel();
    }
    start = begin_;
    for (size_t i = kind; i < mine.size(); i += kMoments.size()) {
      mine[i].second.copy_(whole.narrow(0, start, mine[i].second.numel()));
      start += mine[i].second.numel();
    }
  }
}

}  // namespace muster::engine
