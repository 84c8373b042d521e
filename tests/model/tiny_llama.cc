#include "tests/model/tiny_llama.h"

#include <ATen/ops/ones_like.h>

#include "tests/model/golden.h"

namespace muster::testing {

config::ModelConfig TinyConfig(config::DType dtype) {
  config::ModelConfig config;
  config.num_layers = 4;
  config.hidden_size = 64;
  config.ffn_hidden_size = 160;
  config.num_attention_heads = 8;
  config.num_query_groups = 4;
  config.kv_channels = 16;
  config.padded_vocab_size = 512;
  config.seq_length = 64;
  config.max_position_embeddings = 512;
  config.rotary_base = 500000;
  config.norm_epsilon = 1e-5;
  config.apply_layernorm_1p = true;
  config.untie_embeddings_and_output_weights = true;
  config.params_dtype = dtype;
  return config;
}

std::unique_ptr<model::Llama> LoadTinyLlama(const config::ModelConfig& config) {
  const checkpoint::SafetensorsReader weights(GoldenPath("hf/model.safetensors"));
  auto llama = std::make_unique<model::Llama>(config);
  model::LoadHfWeights(
      config, [&](const std::string& name) { return weights.View(name); }, llama->parameters());
  return llama;
}

std::map<std::string, at::Tensor> HfTensors(const config::ModelConfig& config, model::Llama& llama,
                                            model::HfKind kind) {
  const model::NamedTensors tensors =
      model::ToHf(config, llama.parameters(), kind, config.padded_vocab_size);
  return {tensors.begin(), tensors.end()};
}

data::Batch SampleBatch(const at::Tensor& samples, const at::Tensor& mask, int64_t first,
                        int64_t count) {
  const at::Tensor rows = samples.narrow(0, first, count);
  const int64_t positions = rows.size(1) - 1;
  data::Batch batch;
  batch.tokens_BS = rows.narrow(1, 0, positions);
  batch.labels_BS = rows.narrow(1, 1, positions);
  batch.loss_mask_BS = mask.defined() ? mask.narrow(0, first, count).to(at::kFloat)
                                      : at::ones_like(batch.tokens_BS, at::kFloat);
  return batch;
}

double RelativeError(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor expected = b.to(at::kDouble);
  return a.to(at::kDouble).sub(expected).norm().item<double>() / expected.norm().item<double>();
}

}  // namespace muster::testing
