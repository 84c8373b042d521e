#include "trainer/model/stage.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "trainer/kernels/rope.h"
#include "trainer/tensor/dtype.h"

namespace muster::model {
namespace {

using layers::Context;

std::vector<std::string> LinearNames(const Chunk& chunk) {
  std::vector<std::string> names;
  for (int64_t layer = chunk.first_layer; layer < chunk.end_layer; ++layer) {
    for (const char* linear : {"self_attention.linear_qkv", "self_attention.linear_proj",
                               "mlp.linear_fc1", "mlp.linear_fc2"}) {
      names.push_back(LayerPrefix(layer) + linear);
    }
  }
  return names;
}

layers::Numerics MakeNumerics(const config::ModelConfig& config, fp8::Recipe* recipe,
                              const layers::TensorParallel& tensor,
                              const layers::ContextParallel& context) {
  const at::ScalarType compute = ToScalarType(config.params_dtype);
  const bool round = config.fp8.round_outputs_to_bf16;
  return {compute, round, recipe, fp8::Gemm(compute, round), tensor, context};
}

template <typename A>
at::Tensor ToTensor(const std::vector<A>& values, int64_t rows, at::ScalarType dtype) {
  const at::Tensor tensor =
      at::empty({rows, static_cast<int64_t>(values.size()) / rows}, at::dtype(dtype));
  std::memcpy(tensor.mutable_data_ptr(), values.data(), values.size() * sizeof(A));
  return tensor;
}

}  // namespace

Stage::Stage(const config::ModelConfig& config, const Chunk& chunk,
             const layers::TensorParallel& tensor, const layers::ContextParallel& context,
             parallel::Communicator* amax_group, const std::vector<layers::Weight*>& weights)
    : config_(config),
      chunk_(chunk),
      recipe_(fp8::MakeRecipe(config.fp8, LinearNames(chunk), amax_group)),
      numerics_(MakeNumerics(config, recipe_.get(), tensor, context)) {
  MakeAngles(std::max<int64_t>(config_.seq_length, 1));
  MakeLayers(weights);
}

void Stage::MakeAngles(int64_t positions) {
  const std::vector<float> frequencies =
      kernels::RopeFrequencies(config_.kv_channels, config_.rotary_base, config_.rope_scaling);
  const auto fill = [&]<typename A>(std::type_identity<A>) {
    const kernels::RopeTable<A> table = kernels::MakeRopeTable<A>(positions, frequencies);
    attention_.cos_SD = ToTensor(table.cos, positions, AccumulateType(numerics_.compute));
    attention_.sin_SD = ToTensor(table.sin, positions, AccumulateType(numerics_.compute));
  };
  if (numerics_.compute == at::kDouble) {
    fill(std::type_identity<double>());
  } else {
    fill(std::type_identity<float>());
  }
}

void Stage::MakeLayers(const std::vector<layers::Weight*>& weights) {
  attention_.groups = config_.num_query_groups / numerics_.tensor.size();
  attention_.heads_per_group = config_.num_attention_heads / config_.num_query_groups;
  attention_.head_dim = config_.kv_channels;
  auto next = weights.begin();
  const auto norm = [&] {
    return layers::Norm(*next++, config_.norm_epsilon, config_.apply_layernorm_1p);
  };
  int64_t number = 0;
  const auto linear = [&] { return layers::Linear(*next++, number++); };

  if (chunk_.embedding) {
    embedding_ = std::make_unique<layers::Embedding>(*next++, config_.padded_vocab_size);
  }
  for (int64_t layer = chunk_.first_layer; layer < chunk_.end_layer; ++layer) {
    layers::Norm attention_norm = norm();
    layers::Linear qkv = linear();
    layers::Linear proj = linear();
    layers::Norm mlp_norm = norm();
    layers::Linear fc1 = linear();
    layers::Linear fc2 = linear();
    blocks_.emplace_back(attention_norm, layers::Attention(&attention_, qkv, proj), mlp_norm,
                         layers::Mlp(fc1, fc2));
  }
  if (!chunk_.head) return;
  final_norm_ = std::make_unique<layers::Norm>(norm());
  const bool own = config_.untie_embeddings_and_output_weights || !chunk_.embedding;
  head_ = std::make_unique<layers::Head>(own ? *next++ : weights.front());
}

void Stage::Invalidate() {
  for (layers::Block& block : blocks_) block.Invalidate();
}

Context Stage::Begin(const data::Batch& batch, bool training) {
  const at::Tensor& tokens_BS = batch.tokens_BS;
  if (tokens_BS.dim() != 2 || tokens_BS.scalar_type() != at::kLong) {
    throw std::invalid_argument("tokens must be an int64 tensor [batch, positions]");
  }
  const int64_t positions = tokens_BS.size(1);
  if (positions > attention_.cos_SD.size(0)) MakeAngles(positions);
  layers::Packing packing;
  packing.cu_seqlens = batch.cu_seqlens;
  if (batch.position_ids_BS.defined()) {
    const at::Tensor ids_T = batch.position_ids_BS.reshape({-1});
    packing.cos_TD = at::index_select(attention_.cos_SD, 0, ids_T);
    packing.sin_TD = at::index_select(attention_.sin_SD, 0, ids_T);
  }
  return Context(numerics_, training, tokens_BS.size(0), positions, std::move(packing));
}

at::Tensor Stage::NewActivation(int64_t tokens) const {
  const layers::TensorParallel& tensor = numerics_.tensor;
  return at::empty({tokens / (tensor.sequence() ? tensor.size() : 1), config_.hidden_size},
                   numerics_.compute);
}

at::Tensor Stage::Run(Context& ctx, const data::Batch& batch, at::Tensor x_TC) {
  if (embedding_) x_TC = embedding_->Forward(ctx, batch.tokens_BS.contiguous());
  for (layers::Block& block : blocks_) x_TC = block.Forward(ctx, x_TC);
  return final_norm_ ? final_norm_->Forward(ctx, x_TC) : x_TC;
}

Pass Stage::Forward(const data::Batch& batch, const at::Tensor& x_TC, bool training,
                    double loss_weight) {
  Pass pass;
  pass.context = std::make_unique<Context>(Begin(batch, training));
  Context& ctx = *pass.context;
  const at::Tensor y_TC = Run(ctx, batch, x_TC);
  if (head_) {
    if (batch.labels_BS.numel() != batch.tokens_BS.numel() ||
        batch.loss_mask_BS.numel() != batch.tokens_BS.numel()) {
      throw std::invalid_argument("labels and loss mask must have the shape of the tokens");
    }
    const kernels::CrossEntropySum sum =
        head_->Forward(ctx, y_TC,
                       {batch.labels_BS.contiguous(),
                        batch.loss_mask_BS.to(at::kFloat).contiguous(), loss_weight});
    pass.sum = {at::scalar_tensor(sum.loss, at::kDouble),
                at::scalar_tensor(sum.tokens, at::kDouble)};
  } else {
    pass.activation_TC = y_TC;
  }
  if (training && recipe_) recipe_->AfterForward();
  return pass;
}

at::Tensor Stage::Backward(Pass pass, at::Tensor dy_TC) {
  Context& ctx = *pass.context;
  if (head_) {
    const at::Tensor dnorm_TC = head_->Backward(ctx);
    dy_TC = at::zeros_like(dnorm_TC);
    final_norm_->Backward(ctx, dnorm_TC, dy_TC);
  }
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) block->Backward(ctx, dy_TC);
  if (embedding_) {
    embedding_->Backward(ctx, dy_TC);
    dy_TC = at::Tensor();
  }
  if (recipe_) recipe_->AfterBackward();
  return dy_TC;
}

at::Tensor Stage::Logits(const data::Batch& batch, const at::Tensor& x_TC) {
  Context ctx = Begin(batch, /*training=*/false);
  return head_->Logits(ctx, ctx.tensor().Enter(Run(ctx, batch, x_TC)));
}

}  // namespace muster::model
