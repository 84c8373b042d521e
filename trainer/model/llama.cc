#include "trainer/model/llama.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <stdexcept>

#include "trainer/fp8/recipe.h"
#include "trainer/kernels/rope.h"
#include "trainer/layers/block.h"
#include "trainer/layers/embedding.h"
#include "trainer/layers/head.h"
#include "trainer/model/init.h"
#include "trainer/model/parameter_spec.h"
#include "trainer/tensor/dtype.h"

namespace muster::model {
namespace {

using layers::Context;

std::vector<std::string> LinearNames(const config::ModelConfig& config) {
  std::vector<std::string> names;
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const char* linear : {"self_attention.linear_qkv", "self_attention.linear_proj",
                               "mlp.linear_fc1", "mlp.linear_fc2"}) {
      names.push_back(LayerPrefix(layer) + linear);
    }
  }
  return names;
}

template <typename A>
at::Tensor ToTensor(const std::vector<A>& values, int64_t rows, at::ScalarType dtype) {
  const at::Tensor tensor =
      at::empty({rows, static_cast<int64_t>(values.size()) / rows}, at::dtype(dtype));
  std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(A));
  return tensor;
}

}  // namespace

struct Llama::Impl {
  Impl(const config::ModelConfig& model_config, parallel::Communicator* amax_group);

  void MakeParameters();
  void MakeLayers();
  void BindGradients(at::ScalarType dtype);
  void MakeAngles(int64_t positions);
  // The micro-batch's context; of `batch` only tokens, positions and segments count.
  Context Begin(const data::Batch& batch, bool training);
  // From token ids to the final norm's output [T, C].
  at::Tensor Forward(Context& ctx, const at::Tensor& tokens_BS);
  LossSum Loss(Context& ctx, const at::Tensor& x_TC, const data::Batch& batch);
  void Backward(Context& ctx);

  const config::ModelConfig config;
  const at::ScalarType compute;
  const std::unique_ptr<fp8::Recipe> recipe;
  const layers::Numerics numerics;
  std::vector<Parameter> parameters;
  at::Tensor gradients;
  std::deque<layers::Weight> weights;  // one for each parameter; addresses are stable
  layers::AttentionShape attention;
  std::unique_ptr<layers::Embedding> embedding;
  std::vector<layers::Block> blocks;
  std::unique_ptr<layers::Norm> final_norm;
  std::unique_ptr<layers::Head> head;
};

Llama::Impl::Impl(const config::ModelConfig& model_config, parallel::Communicator* amax_group)
    : config(model_config),
      compute(ToScalarType(model_config.params_dtype)),
      recipe(fp8::MakeRecipe(model_config.fp8, LinearNames(model_config), amax_group)),
      numerics{compute, model_config.fp8.round_outputs_to_bf16, recipe.get(),
               fp8::Gemm(compute, model_config.fp8.round_outputs_to_bf16)} {
  Validate(config);
  MakeParameters();
  BindGradients(AccumulateType(compute));
  MakeAngles(std::max<int64_t>(config.seq_length, 1));
  MakeLayers();
}

void Llama::Impl::MakeParameters() {
  const at::ScalarType master = AccumulateType(compute);
  for (const ParameterSpec& spec : ParameterSpecs(config)) {
    at::Tensor value = at::empty(spec.shape, at::kFloat);
    if (spec.init_std > 0) {
      FillNormal(config.seed, spec.name, spec.init_std, 0, value.numel(), Data<float>(value));
    } else {
      value.fill_(spec.init_value);
    }
    parameters.push_back(
        {spec.name, value.to(master), at::Tensor(), spec.decoupled_lr, spec.shape.size() > 1});
  }
}

void Llama::Impl::BindGradients(at::ScalarType dtype) {
  int64_t total = 0;
  for (const Parameter& parameter : parameters) total += parameter.value.numel();
  gradients = at::zeros({total}, dtype);
  int64_t start = 0;
  for (Parameter& parameter : parameters) {
    const int64_t count = parameter.value.numel();
    parameter.grad = gradients.narrow(0, start, count).view(parameter.value.sizes());
    start += count;
  }
}

void Llama::Impl::MakeAngles(int64_t positions) {
  const std::vector<float> frequencies =
      kernels::RopeFrequencies(config.kv_channels, config.rotary_base, config.rope_scaling);
  const auto fill = [&]<typename A>(std::type_identity<A>) {
    const kernels::RopeTable<A> table = kernels::MakeRopeTable<A>(positions, frequencies);
    attention.cos_SD = ToTensor(table.cos, positions, AccumulateType(compute));
    attention.sin_SD = ToTensor(table.sin, positions, AccumulateType(compute));
  };
  if (compute == at::kDouble) {
    fill(std::type_identity<double>());
  } else {
    fill(std::type_identity<float>());
  }
}

void Llama::Impl::MakeLayers() {
  attention.groups = config.num_query_groups;
  attention.heads_per_group = config.num_attention_heads / config.num_query_groups;
  attention.head_dim = config.kv_channels;
  // Weights follow the order of ParameterSpecs.
  for (Parameter& parameter : parameters) weights.emplace_back(&parameter);
  auto next = weights.begin();
  const auto norm = [&] {
    return layers::Norm(&*next++, config.norm_epsilon, config.apply_layernorm_1p);
  };
  int64_t number = 0;
  const auto linear = [&] { return layers::Linear(&*next++, number++); };

  embedding = std::make_unique<layers::Embedding>(&*next++);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    layers::Norm attention_norm = norm();
    layers::Linear qkv = linear();
    layers::Linear proj = linear();
    layers::Norm mlp_norm = norm();
    layers::Linear fc1 = linear();
    layers::Linear fc2 = linear();
    blocks.emplace_back(attention_norm, layers::Attention(&attention, qkv, proj), mlp_norm,
                        layers::Mlp(fc1, fc2));
  }
  final_norm = std::make_unique<layers::Norm>(norm());
  head = std::make_unique<layers::Head>(
      config.untie_embeddings_and_output_weights ? &*next++ : &weights.front());
}

Context Llama::Impl::Begin(const data::Batch& batch, bool training) {
  const at::Tensor& tokens_BS = batch.tokens_BS;
  if (tokens_BS.dim() != 2 || tokens_BS.scalar_type() != at::kLong) {
    throw std::invalid_argument("tokens must be an int64 tensor [batch, positions]");
  }
  const int64_t positions = tokens_BS.size(1);
  if (positions > attention.cos_SD.size(0)) MakeAngles(positions);
  layers::Packing packing;
  packing.cu_seqlens = batch.cu_seqlens;
  if (batch.position_ids_BS.defined()) {
    const at::Tensor ids_T = batch.position_ids_BS.reshape({-1});
    packing.cos_TD = at::index_select(attention.cos_SD, 0, ids_T);
    packing.sin_TD = at::index_select(attention.sin_SD, 0, ids_T);
  }
  return Context(numerics, training, tokens_BS.size(0), positions, std::move(packing));
}

at::Tensor Llama::Impl::Forward(Context& ctx, const at::Tensor& tokens_BS) {
  at::Tensor x_TC = embedding->Forward(ctx, tokens_BS.contiguous());
  for (layers::Block& block : blocks) x_TC = block.Forward(ctx, x_TC);
  return final_norm->Forward(ctx, x_TC);
}

LossSum Llama::Impl::Loss(Context& ctx, const at::Tensor& x_TC, const data::Batch& batch) {
  if (batch.labels_BS.numel() != x_TC.size(0) || batch.loss_mask_BS.numel() != x_TC.size(0)) {
    throw std::invalid_argument("labels and loss mask must have the shape of the tokens");
  }
  const kernels::CrossEntropySum sum = head->Forward(
      ctx, x_TC, batch.labels_BS.contiguous(), batch.loss_mask_BS.to(at::kFloat).contiguous());
  return {at::scalar_tensor(sum.loss, at::kDouble), at::scalar_tensor(sum.tokens, at::kDouble)};
}

void Llama::Impl::Backward(Context& ctx) {
  const at::Tensor dy_TC = head->Backward(ctx);
  at::Tensor dx_TC = at::zeros_like(dy_TC);
  final_norm->Backward(ctx, dy_TC, dx_TC);
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) block->Backward(ctx, dx_TC);
  embedding->Backward(ctx, dx_TC);
}

Llama::Llama(const config::ModelConfig& config, parallel::Communicator* amax_group)
    : impl_(std::make_unique<Impl>(config, amax_group)) {}

Llama::~Llama() = default;

std::vector<Parameter>& Llama::parameters() {
  return impl_->parameters;
}

at::Tensor Llama::gradient_buffer() {
  return impl_->gradients;
}

void Llama::UseBf16Gradients() {
  impl_->BindGradients(at::kBFloat16);
}

void Llama::BeginIteration() {
  for (layers::Weight& weight : impl_->weights) weight.Invalidate();
  for (layers::Block& block : impl_->blocks) block.Invalidate();
}

LossSum Llama::ForwardBackward(const data::Batch& batch) {
  Context ctx = impl_->Begin(batch, /*training=*/true);
  const LossSum sum = impl_->Loss(ctx, impl_->Forward(ctx, batch.tokens_BS), batch);
  if (impl_->recipe) impl_->recipe->AfterForward();
  impl_->Backward(ctx);
  if (impl_->recipe) impl_->recipe->AfterBackward();
  return sum;
}

LossSum Llama::Evaluate(const data::Batch& batch) {
  Context ctx = impl_->Begin(batch, /*training=*/false);
  return impl_->Loss(ctx, impl_->Forward(ctx, batch.tokens_BS), batch);
}

at::Tensor Llama::Logits(const at::Tensor& tokens_BS) {
  Context ctx = impl_->Begin({tokens_BS, {}, {}}, /*training=*/false);
  return impl_->head->Logits(ctx, impl_->Forward(ctx, tokens_BS))
      .view({tokens_BS.size(0), tokens_BS.size(1), -1});
}

std::vector<std::pair<std::string, at::Tensor>> Llama::fp8_state() {
  if (!impl_->recipe) return {};
  return impl_->recipe->State();
}

}  // namespace muster::model
