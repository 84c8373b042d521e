#include "trainer/fp8/delayed_recipe.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <stdexcept>

#include "trainer/tensor/dtype.h"

namespace muster::fp8 {
namespace {

constexpr int64_t kForwardSlots = 3;
constexpr int64_t kBackwardSlots = 2;

}  // namespace

DelayedRecipe::DelayedRecipe(const config::Fp8Config& config,
                             const std::vector<std::string>& linears,
                             parallel::Communicator* amax_group)
    : config_(config),
      linears_(linears),
      amax_group_(amax_group),
      forward_(MakeDirection(kForwardSlots)),
      backward_(MakeDirection(kBackwardSlots)) {}

DelayedRecipe::Direction DelayedRecipe::MakeDirection(int64_t slots) const {
  if (config_.amax_history_len < 1) {
    throw std::invalid_argument("--fp8-amax-history-len must be at least 1, not " +
                                std::to_string(config_.amax_history_len));
  }
  const int64_t count = static_cast<int64_t>(linears_.size()) * slots;
  return {slots, at::ones({count}, at::kFloat),
          at::zeros({config_.amax_history_len, count}, at::kFloat)};
}

QuantizedTensor DelayedRecipe::Quantize(int64_t linear, Role role, const at::Tensor& x,
                                        bool record) {
  Direction& direction = role == Role::kGradOutput ? backward_ : forward_;
  const int64_t slot = linear * direction.slots + (role == Role::kWeight ? 1 : 0);
  if (record) {
    float& amax = Data<float>(direction.history)[slot];
    amax = std::max(amax, Amax(x));
  }
  return fp8::Quantize(x, Data<float>(direction.scale)[slot], FormatOf(config_.format, role));
}

void DelayedRecipe::Update(Direction& direction, Format format) {
  const at::Tensor amax = direction.history[0].clone();
  if (amax_group_ != nullptr) amax_group_->AllReduce(amax, parallel::ReduceOp::kMax);
  const DelayedRule rule{config_.amax_history_len, config_.amax_algo, config_.margin, format};
  UpdateDelayed(rule, amax.numel(), Data<float>(amax), Data<float>(direction.scale),
                Data<float>(direction.history));
}

void DelayedRecipe::AfterForward() {
  Update(forward_, FormatOf(config_.format, Role::kInput));
}

void DelayedRecipe::AfterBackward() {
  Update(backward_, FormatOf(config_.format, Role::kGradOutput));
}

std::vector<std::pair<std::string, at::Tensor>> DelayedRecipe::State() {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (size_t i = 0; i < linears_.size(); ++i) {
    const auto add = [&](const Direction& direction, const std::string& suffix) {
      const int64_t start = static_cast<int64_t>(i) * direction.slots;
      state.emplace_back(linears_[i] + ".fp8.scale_" + suffix,
                         direction.scale.narrow(0, start, direction.slots));
      state.emplace_back(linears_[i] + ".fp8.amax_history_" + suffix,
                         direction.history.narrow(1, start, direction.slots));
    };
    add(forward_, "fwd");
    add(backward_, "bwd");
  }
  return state;
}

}  // namespace muster::fp8
