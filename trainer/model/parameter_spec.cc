#include "trainer/model/parameter_spec.h"

#include <cmath>
#include <stdexcept>

namespace muster::model {
namespace {

void Require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

void RequirePositive(int64_t value, const char* flag) {
  Require(value > 0, std::string(flag) + " must be positive, not " + std::to_string(value));
}

}  // namespace

std::string LayerPrefix(int64_t layer) {
  return "decoder.layers." + std::to_string(layer) + ".";
}

void Validate(const config::ModelConfig& config) {
  RequirePositive(config.num_layers, "--num-layers");
  RequirePositive(config.hidden_size, "--hidden-size");
  RequirePositive(config.ffn_hidden_size, "--ffn-hidden-size");
  RequirePositive(config.num_attention_heads, "--num-attention-heads");
  RequirePositive(config.num_query_groups, "--num-query-groups");
  RequirePositive(config.kv_channels, "--kv-channels");
  RequirePositive(config.padded_vocab_size, "the padded vocabulary size");
  Require(config.num_attention_heads % config.num_query_groups == 0,
          "--num-attention-heads " + std::to_string(config.num_attention_heads) +
              " is not a multiple of --num-query-groups " +
              std::to_string(config.num_query_groups));
  Require(config.kv_channels % 2 == 0, "--kv-channels " + std::to_string(config.kv_channels) +
                                           " is odd, but rotary embedding turns pairs of channels");
  Require(config.rotary_base > 0, "--rotary-base must be positive");
}

Chunk WholeModel(const config::ModelConfig& config) {
  return {.first_layer = 0, .end_layer = config.num_layers};
}

std::vector<ParameterSpec> ParameterSpecs(const config::ModelConfig& config) {
  return ParameterSpecs(config, WholeModel(config));
}

std::vector<ParameterSpec> ParameterSpecs(const config::ModelConfig& config, const Chunk& chunk) {
  const int64_t hidden = config.hidden_size, ffn = config.ffn_hidden_size;
  const int64_t attention = config.num_attention_heads * config.kv_channels;
  const int64_t qkv = attention + 2 * config.num_query_groups * config.kv_channels;
  const double std_dev = config.init_method_std;
  const double output_std = std_dev / std::sqrt(2.0 * static_cast<double>(config.num_layers));
  const double gamma = config.apply_layernorm_1p ? 0.0 : 1.0;

  constexpr Split kRows = {.dim = 0}, kColumns = {.dim = 1}, kRowsOfTwo = {.dim = 0, .blocks = 2};
  const ParameterSpec embedding = {
      kEmbeddingName, {config.padded_vocab_size, hidden}, std_dev, 0, true, kRows};

  std::vector<ParameterSpec> specs;
  if (chunk.embedding) specs.push_back(embedding);
  for (int64_t layer = chunk.first_layer; layer < chunk.end_layer; ++layer) {
    const std::string prefix = LayerPrefix(layer);
    specs.push_back(
        {prefix + "self_attention.linear_qkv.layer_norm_weight", {hidden}, 0, gamma, false});
    specs.push_back(
        {prefix + "self_attention.linear_qkv.weight", {qkv, hidden}, std_dev, 0, false, kRows});
    specs.push_back({prefix + "self_attention.linear_proj.weight",
                     {hidden, attention},
                     output_std,
                     0,
                     false,
                     kColumns});
    specs.push_back({prefix + "mlp.linear_fc1.layer_norm_weight", {hidden}, 0, gamma, false});
    specs.push_back(
        {prefix + "mlp.linear_fc1.weight", {2 * ffn, hidden}, std_dev, 0, false, kRowsOfTwo});
    specs.push_back(
        {prefix + "mlp.linear_fc2.weight", {hidden, ffn}, output_std, 0, false, kColumns});
  }
  if (!chunk.head) return specs;
  specs.push_back({kFinalNormName, {hidden}, 0, gamma, false});
  if (config.untie_embeddings_and_output_weights) {
    specs.push_back({kHeadName, {config.padded_vocab_size, hidden}, std_dev, 0, true, kRows});
  } else if (!chunk.embedding) {
    specs.push_back(embedding);
  }
  return specs;
}

}  // namespace muster::model
