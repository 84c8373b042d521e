#include "trainer/model/llama.h"

#include <ATen/ops/zeros.h>

#include "trainer/model/parameter_spec.h"
#include "trainer/model/shard.h"
#include "trainer/tensor/dtype.h"

namespace muster::model {

Llama::Llama(const config::ModelConfig& config, const Sharing& sharing) : config_(config) {
  Validate(config_);
  std::vector<Chunk> chunks = sharing.chunks;
  if (chunks.empty()) chunks.push_back(WholeModel(config_));
  for (const Chunk& chunk : chunks) AddParameters(chunk, sharing);
  BindValues(sharing.padding);
  BindGradients(AccumulateType(ToScalarType(config_.params_dtype)));
  for (Parameter& parameter : parameters_) weights_.emplace_back(&parameter);
  auto next = weights_.begin();
  for (const Chunk& chunk : chunks) {
    std::vector<layers::Weight*> weights(ParameterSpecs(config_, chunk).size());
    for (layers::Weight*& weight : weights) weight = &*next++;
    stages_.emplace_back(config_, chunk,
                         layers::TensorParallel(sharing.tensor, sharing.sequence_parallel),
                         sharing.context, sharing.amax, weights);
  }
}

Llama::~Llama() = default;

void Llama::AddParameters(const Chunk& chunk, const Sharing& sharing) {
  const Share share =
      sharing.tensor == nullptr ? Share{} : Share{sharing.tensor->rank(), sharing.tensor->size()};
  const at::ScalarType master = AccumulateType(ToScalarType(config_.params_dtype));
  for (const ParameterSpec& spec : ParameterSpecs(config_, chunk)) {
    Parameter parameter;
    parameter.name = spec.name;
    parameter.value = InitialShard(config_.seed, spec, share).to(master);
    parameter.decoupled_lr = spec.decoupled_lr;
    parameter.weight_decay = spec.shape.size() > 1;
    parameter.split = spec.split;
    const bool whole = spec.split.dim < 0;
    parameter.partial = whole && share.size > 1 && sharing.sequence_parallel;
    parameter.tied = spec.name == kEmbeddingName && !config_.untie_embeddings_and_output_weights &&
                     chunk.embedding != chunk.head;
    parameter.duplicate = (whole && share.rank > 0) || (parameter.tied && chunk.head);
    parameters_.push_back(std::move(parameter));
  }
}

void Llama::BindValues(int64_t padding) {
  int64_t total = 0;
  for (const Parameter& parameter : parameters_) total += parameter.value.numel();
  total = (total + padding - 1) / padding * padding;
  values_ = at::zeros({total}, AccumulateType(ToScalarType(config_.params_dtype)));
  int64_t start = 0;
  for (Parameter& parameter : parameters_) {
    const int64_t count = parameter.value.numel();
    const at::Tensor view = values_.narrow(0, start, count).view(parameter.value.sizes());
    view.copy_(parameter.value);
    parameter.value = view;
    start += count;
  }
}

void Llama::BindGradients(at::ScalarType dtype) {
  gradients_ = at::zeros(values_.sizes(), dtype);
  int64_t start = 0;
  for (Parameter& parameter : parameters_) {
    const int64_t count = parameter.value.numel();
    parameter.grad = gradients_.narrow(0, start, count).view(parameter.value.sizes());
    start += count;
  }
}

void Llama::UseBf16Gradients() {
  BindGradients(at::kBFloat16);
}

void Llama::BeginIteration() {
  for (layers::Weight& weight : weights_) weight.Invalidate();
  for (Stage& stage : stages_) stage.Invalidate();
}

LossSum Llama::ForwardBackward(const data::Batch& batch, double loss_weight) {
  Pass pass = stages_.at(0).Forward(batch, {}, /*training=*/true, loss_weight);
  const LossSum sum = pass.sum;
  stages_.at(0).Backward(std::move(pass), {});
  return sum;
}

LossSum Llama::Evaluate(const data::Batch& batch) {
  return stages_.at(0).Forward(batch, {}, /*training=*/false).sum;
}

at::Tensor Llama::Logits(const at::Tensor& tokens_BS) {
  return stages_.at(0)
      .Logits({tokens_BS, {}, {}}, {})
      .view({tokens_BS.size(0), tokens_BS.size(1), -1});
}

std::vector<std::pair<std::string, at::Tensor>> Llama::fp8_state() {
  std::vector<std::pair<std::string, at::Tensor>> state;
  for (Stage& stage : stages_) {
    if (stage.recipe() == nullptr) continue;
    for (auto& named : stage.recipe()->State()) state.push_back(std::move(named));
  }
  return state;
}

}  // namespace muster::model
