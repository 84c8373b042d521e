#include "trainer/device/scaler.h"

#include <ATen/ops/empty.h>

#include "trainer/tensor/dtype.h"

namespace muster::device {

using fp8::Format;
using fp8::Role;

Scaler::Scaler(Ops* ops, const config::Fp8Config& config, std::vector<std::string> linears,
               parallel::Communicator* group)
    : ops_(ops),
      config_(config),
      linears_(std::move(linears)),
      group_(group),
      tensorwise_(config.recipe == config::Fp8Recipe::kTensorwise) {}

void Scaler::Plan(Planner& planner) {
  const auto linears = static_cast<int64_t>(linears_.size());
  planner.Want(&scale_inverses_, "fp8.scale_inverses", 3 * linears * kSlotFloats);
  if (tensorwise_) {
    planner.Want(&current_amax_, "fp8.current_amax", 1);
    planner.Want(&current_scales_, "fp8.current_scales", 3 * linears);
    return;
  }
  for (Direction* direction : {&forward_, &backward_}) {
    planner.Want(&direction->scale, "fp8.scale", Count(*direction));
    planner.Want(&direction->history, "fp8.amax_history",
                 config_.amax_history_len * Count(*direction));
    planner.Want(&direction->reduced, "fp8.reduced_amax", Count(*direction));
    planner.Want(&direction->used, "fp8.used_scale", Count(*direction));
  }
}

void Scaler::Reset() {
  if (tensorwise_) return;  // memory comes zeroed
  for (const Direction* direction : {&forward_, &backward_}) {
    ops_->Fill(Count(*direction), 1, direction->scale);
  }
}

const float* Scaler::ScaleInverse(int64_t linear, Role role) const {
  return scale_inverses_ + (3 * linear + static_cast<int64_t>(role)) * kSlotFloats;
}

kernels::Fp8Output Scaler::Output(int64_t linear, Role role, uint8_t* codes, uint8_t* transposed,
                                  bool record) const {
  const Format format = fp8::FormatOf(config_.format, role);
  float* const scale_inv = const_cast<float*>(ScaleInverse(linear, role));
  if (tensorwise_) {
    return {format, CurrentScale(linear, role), codes, transposed, scale_inv, nullptr};
  }
  const Direction& direction = role == Role::kGradOutput ? backward_ : forward_;
  const int64_t slot = linear * direction.slots + (role == Role::kWeight ? 1 : 0);
  return {format,    direction.scale + slot,
          codes,     transposed,
          scale_inv, record ? direction.history + slot : nullptr};
}

kernels::Fp8Output Scaler::InputAgain(int64_t linear, uint8_t* codes, uint8_t* transposed) const {
  const float* const scale =
      tensorwise_ ? CurrentScale(linear, Role::kInput) : forward_.used + linear * forward_.slots;
  return {Format::kE4m3, scale, codes, transposed, nullptr, nullptr};
}

void Scaler::Update(Direction& direction, Format format) {
  if (tensorwise_) return;
  const int64_t count = Count(direction);
  const float* amax = direction.history;
  if (UsesHost()) {
    const at::Tensor host = at::empty({count}, at::kFloat);
    ops_->Download(host.mutable_data_ptr(), direction.history, count * 4);
    group_->AllReduce(host, parallel::ReduceOp::kMax);
    ops_->Upload(direction.reduced, host.const_data_ptr(), count * 4);
    amax = direction.reduced;
  }
  ops_->Copy(direction.used, direction.scale, count * 4);
  ops_->UpdateDelayed({config_.amax_history_len, config_.amax_algo, config_.margin, format}, count,
                      amax, direction.scale, direction.history);
}

void Scaler::AfterForward() {
  Update(forward_, fp8::FormatOf(config_.format, Role::kInput));
}

void Scaler::AfterBackward() {
  Update(backward_, fp8::FormatOf(config_.format, Role::kGradOutput));
}

std::vector<std::pair<std::string, at::Tensor>> Scaler::Views(const Direction& direction,
                                                              const at::Tensor& scale,
                                                              const at::Tensor& history,
                                                              const char* suffix) const {
  std::vector<std::pair<std::string, at::Tensor>> views;
  for (size_t i = 0; i < linears_.size(); ++i) {
    const int64_t start = static_cast<int64_t>(i) * direction.slots;
    views.emplace_back(linears_[i] + ".fp8.scale_" + suffix,
                       scale.narrow(0, start, direction.slots));
    views.emplace_back(linears_[i] + ".fp8.amax_history_" + suffix,
                       history.narrow(1, start, direction.slots));
  }
  return views;
}

std::vector<std::pair<std::string, at::Tensor>> Scaler::Fetch() {
  std::vector<std::pair<std::string, at::Tensor>> state;
  if (tensorwise_) return state;
  for (const auto& [direction, suffix] :
       {std::pair<Direction*, const char*>{&forward_, "fwd"}, {&backward_, "bwd"}}) {
    const int64_t count = Count(*direction), rows = config_.amax_history_len;
    const at::Tensor scale = at::empty({count}, at::kFloat);
    const at::Tensor history = at::empty({rows, count}, at::kFloat);
    ops_->Download(scale.mutable_data_ptr(), direction->scale, count * 4);
    ops_->Download(history.mutable_data_ptr(), direction->history, rows * count * 4);
    for (auto& view : Views(*direction, scale, history, suffix)) state.push_back(std::move(view));
  }
  return state;
}

void Scaler::Store(const std::vector<std::pair<std::string, at::Tensor>>& state) {
  if (tensorwise_) return;
  size_t next = 0;  // the order of Fetch
  for (const auto& [direction, suffix] :
       {std::pair<Direction*, const char*>{&forward_, "fwd"}, {&backward_, "bwd"}}) {
    const int64_t count = Count(*direction), rows = config_.amax_history_len;
    const at::Tensor scale = at::empty({count}, at::kFloat);
    const at::Tensor history = at::empty({rows, count}, at::kFloat);
    for (auto& [name, view] : Views(*direction, scale, history, suffix)) {
      view.copy_(state.at(next++).second);
    }
    ops_->Upload(direction->scale, scale.const_data_ptr(), count * 4);
    ops_->Upload(direction->history, history.const_data_ptr(), rows * count * 4);
  }
}

}  // namespace muster::device
