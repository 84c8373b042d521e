#include "trainer/engine/device_engine.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "trainer/config/error.h"
#include "trainer/device/model.h"
#include "trainer/device/optimizer.h"

namespace muster::engine {
namespace {

using device::Weight;
using device::Weights;

// Whether SwiGLU's output is made again. Throws ConfigError for parts that this device keeps.
bool RecomputesSwiglu(const config::TrainConfig& config) {
  bool swiglu = false;
  for (const std::string& module : config.recompute_modules) {
    if (module == "mlp_act") {
      swiglu = true;
    } else if (module != "core_attn") {
      throw ConfigError("--recompute-modules " + module +
                        ": --device cuda recomputes no such part alone; it takes core_attn and "
                        "mlp_act, or --recompute-granularity full");
    }
  }
  if (swiglu && config.recompute_granularity != "selective" && !config.recompute_activations) {
    throw ConfigError("--recompute-modules mlp_act needs --recompute-granularity selective");
  }
  return swiglu;
}

// How many layers keep their input alone. Throws ConfigError for what this device doesn't do.
int64_t RecomputedLayers(const config::TrainConfig& config) {
  const bool block = config.recompute_method == "block";
  if (config.recompute_granularity != "full") {
    if (config.recompute_num_layers || !config.recompute_method.empty()) {
      throw ConfigError(std::string(config.recompute_num_layers ? "--recompute-num-layers"
                                                                : "--recompute-method") +
                        " needs --recompute-granularity full");
    }
    return 0;
  }
  if (block) {
    if (!config.recompute_num_layers) {
      throw ConfigError("--recompute-method block needs --recompute-num-layers");
    }
    return std::min(*config.recompute_num_layers, config.model.num_layers);
  }
  if (config.recompute_num_layers.value_or(1) != 1) {
    throw ConfigError("--recompute-num-layers " + std::to_string(*config.recompute_num_layers) +
                      ": --device cuda keeps the input of each layer, not of each " +
                      std::to_string(*config.recompute_num_layers) +
                      "; use 1, or --recompute-method block");
  }
  return config.model.num_layers;
}

device::Shape ShapeOf(const config::TrainConfig& config) {
  device::Shape shape{.model = config.model, .batch = config.micro_batch_size};
  const std::string& fast = config.fp8_fast_accumulation;
  shape.fast = {.forward = fast != "none",
                .input_gradient = fast == "input" || fast == "all",
                .weight_gradient = fast == "all"};
  shape.recomputed_layers = RecomputedLayers(config);
  shape.recompute_swiglu = RecomputesSwiglu(config);
  return shape;
}

// With Averaging::kMicroBatches every micro-batch counts alike: its gradient is divided by its own
// tokens. The model adds gradients of SUMS to the buffer, so the buffer holds the mean so far times
// the tokens of the latest micro-batch. Micro-batches of equal token counts, the usual case, cost
// nothing.
class MicroBatchMean {
 public:
  // `scale` multiplies all gradients.
  explicit MicroBatchMean(std::function<void(double)> scale) : scale_gradients_(std::move(scale)) {}

  // Before the backward of a micro-batch with this many tokens.
  void Before(double tokens) {
    const double next = std::max(tokens, 1.0);
    if (scale_ != 0 && scale_ != next) scale_gradients_(next / scale_);
    scale_ = next;
  }
  void Finish(int64_t micro_batches) {
    scale_gradients_(1.0 / (scale_ * static_cast<double>(micro_batches)));
  }

 private:
  std::function<void(double)> scale_gradients_;
  double scale_ = 0;
};

class DeviceEngine : public Engine {
 public:
  DeviceEngine(const config::TrainConfig& config, std::unique_ptr<device::Ops> ops,
               const parallel::Groups& groups, std::function<double()> joules)
      : model_(std::move(ops), ShapeOf(config),
               {.bf16_moments = config.exp_avg_dtype == "bf16",
                .bf16_gradients = config.grad_reduce_in_bf16},
               groups.amax.get()),
        groups_(groups),
        optimizer_(&model_, {.beta1 = config.adam_beta1,
                             .beta2 = config.adam_beta2,
                             .epsilon = config.adam_eps,
                             .weight_decay = config.weight_decay}),
        joules_(std::move(joules)) {}

  int64_t parameter_count() const override {
    int64_t count = 0;
    for (const Weight& weight : model_.weights().all()) count += weight.count();
    return count;
  }

  void BeginIteration() override { model_.BeginIteration(); }
  void ForwardBackward(const MicroBatches& micro_batches, Averaging averaging) override {
    MicroBatchMean mean([this](double factor) { optimizer_.ScaleGradients(factor); });
    for (int64_t k = 0; k < micro_batches.count; ++k) {
      const MicroBatch micro_batch = micro_batches.load(k);
      if (averaging == Averaging::kMicroBatches) mean.Before(micro_batch.tokens);
      model_.ForwardBackward(micro_batch.batch);
    }
    if (averaging == Averaging::kMicroBatches) {
      mean.Finish(micro_batches.count * groups_.sizes.data);
    }
  }
  Sums TakeSums() override {
    const device::Model::Sums sums = model_.TakeSums();
    return {sums.loss, sums.tokens};
  }
  Sums Evaluate(const MicroBatches& micro_batches) override {
    model_.BeginSums();
    for (int64_t k = 0; k < micro_batches.count; ++k) model_.Evaluate(micro_batches.load(k).batch);
    return TakeSums();
  }

  // Through the host: groups on a GPU's own links come with NCCL.
  void ReduceGradients() override {
    parallel::Communicator& group = *groups_.data_context;
    if (group.size() == 1) return;
    const auto& fp32 = model_.weights().gradients();
    const auto& bf16 = model_.weights().bf16_gradients();
    AllReduce(group, fp32.data, at::empty({fp32.count}, at::kFloat));
    if (bf16.count > 0) AllReduce(group, bf16.data, at::empty({bf16.count}, at::kBFloat16));
  }
  double Normalize(double tokens) override { return optimizer_.Normalize(tokens); }
  std::string NonFiniteGradient() override { return optimizer_.NonFiniteGradient(); }
  void Step(const optim::LearningRates& rates, double coefficient) override {
    optimizer_.Step(rates, coefficient);
  }

  int64_t step_count() const override { return optimizer_.step_count(); }
  void set_step_count(int64_t count) override { optimizer_.set_step_count(count); }

  State Fetch(Contents contents) override {
    State state;
    for (const Weight& weight : model_.weights().all()) {
      const auto fetch = [&](Weights::Part part) {
        const at::Tensor tensor = at::empty(weight.spec.shape, at::kFloat);
        model_.weights().Download(weight, part, tensor.data_ptr<float>());
        return tensor;
      };
      const std::string& name = weight.spec.name;
      state.parameters.push_back({name, fetch(Weights::Part::kValue), at::Tensor(),
                                  weight.spec.decoupled_lr, weight.spec.shape.size() > 1});
      if (contents == Contents::kWeights) continue;
      state.optimizer.emplace_back(name + ".exp_avg", fetch(Weights::Part::kExpAvg));
      state.optimizer.emplace_back(name + ".exp_avg_sq", fetch(Weights::Part::kExpAvgSq));
    }
    if (contents == Contents::kAll && model_.scaler() != nullptr) {
      state.fp8 = model_.scaler()->Fetch();
    }
    return state;
  }

  void Store(const State& state) override {
    size_t i = 0;
    for (const Weight& weight : model_.weights().all()) {
      const auto store = [&](Weights::Part part, const at::Tensor& tensor) {
        model_.weights().Upload(weight, part, tensor.const_data_ptr<float>());
      };
      store(Weights::Part::kValue, state.parameters.at(i).value);
      if (!state.optimizer.empty()) {
        store(Weights::Part::kExpAvg, state.optimizer.at(2 * i).second);
        store(Weights::Part::kExpAvgSq, state.optimizer.at(2 * i + 1).second);
      }
      ++i;
    }
    if (!state.fp8.empty()) model_.scaler()->Store(state.fp8);
    model_.weights().Convert();
  }

  double Joules() const override { return joules_ ? joules_() : -1; }

 private:
  // `host` has room for all of `gradients`.
  void AllReduce(parallel::Communicator& group, void* gradients, const at::Tensor& host) {
    const auto bytes = static_cast<int64_t>(host.nbytes());
    model_.ops().Download(host.mutable_data_ptr(), gradients, bytes);
    group.AllReduce(host, parallel::ReduceOp::kSum);
    model_.ops().Upload(gradients, host.const_data_ptr(), bytes);
  }

  device::Model model_;
  const parallel::Groups& groups_;
  device::Optimizer optimizer_;
  std::function<double()> joules_;
};

}  // namespace

std::unique_ptr<Engine> MakeDeviceEngine(const config::TrainConfig& config,
                                         std::unique_ptr<device::Ops> ops,
                                         const parallel::Groups& groups,
                                         std::function<double()> joules) {
  try {
    return std::make_unique<DeviceEngine>(config, std::move(ops), groups, std::move(joules));
  } catch (const std::invalid_argument& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace muster::engine
