#include <ATen/ops/isfinite.h>

#include "trainer/engine/engine.h"
#include "trainer/model/llama.h"
#include "trainer/optim/gradients.h"

namespace muster::engine {
namespace {

// model::Llama and optim::AdamW on LibTorch tensors: the reference.
class CpuEngine : public Engine {
 public:
  CpuEngine(const config::TrainConfig& config, parallel::Communicator* amax_group)
      : model_(config.model, amax_group) {
    if (config.grad_reduce_in_bf16) model_.UseBf16Gradients();
    optimizer_ = std::make_unique<optim::AdamW>(
        &model_.parameters(), optim::AdamWConfig{.beta1 = config.adam_beta1,
                                                 .beta2 = config.adam_beta2,
                                                 .epsilon = config.adam_eps,
                                                 .weight_decay = config.weight_decay});
    for (const model::Parameter& p : model_.parameters()) parameter_count_ += p.value.numel();
  }

  int64_t parameter_count() const override { return parameter_count_; }

  void BeginIteration() override {
    model_.gradient_buffer().zero_();
    model_.BeginIteration();
    sums_ = {};
  }
  void ForwardBackward(const data::Batch& batch) override {
    Add(model_.ForwardBackward(batch), sums_);
  }
  Sums TakeSums() override { return sums_; }
  Sums Evaluate(const data::Batch& batch) override {
    Sums sums;
    Add(model_.Evaluate(batch), sums);
    return sums;
  }

  void ScaleGradients(double factor) override { model_.gradient_buffer().mul_(factor); }
  void AllReduceGradients(parallel::Communicator& group) override {
    group.AllReduce(model_.gradient_buffer(), parallel::ReduceOp::kSum);
  }
  double Normalize(double tokens) override {
    if (tokens != 1) optim::DivideByTokens(model_.gradient_buffer(), tokens);
    return optim::GradientNorm(model_.gradient_buffer());
  }
  std::string NonFiniteGradient() override {
    for (const model::Parameter& parameter : model_.parameters()) {
      if (!at::isfinite(parameter.grad).all().item<bool>()) return parameter.name;
    }
    return "";
  }
  void Step(const optim::LearningRates& rates, double coefficient) override {
    optimizer_->Step(rates, coefficient);
  }

  int64_t step_count() const override { return optimizer_->step_count(); }
  void set_step_count(int64_t count) override { optimizer_->set_step_count(count); }
  State Fetch(Contents contents) override {
    if (contents == Contents::kWeights) return {model_.parameters(), {}, {}};
    return {model_.parameters(), optimizer_->State(), model_.fp8_state()};
  }
  void Store(const State&) override {}  // live views

 private:
  static void Add(const model::LossSum& sum, Sums& to) {
    to.loss += sum.loss.item<double>();
    to.tokens += sum.tokens.item<double>();
  }

  model::Llama model_;
  std::unique_ptr<optim::AdamW> optimizer_;
  int64_t parameter_count_ = 0;
  Sums sums_;
};

}  // namespace

std::unique_ptr<Engine> MakeCpuEngine(const config::TrainConfig& config,
                                      parallel::Communicator* amax_group) {
  return std::make_unique<CpuEngine>(config, amax_group);
}

}  // namespace muster::engine
