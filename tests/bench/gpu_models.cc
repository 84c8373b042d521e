#include "tests/bench/gpu_models.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include <fstream>
#include <stdexcept>

namespace muster::bench {
namespace {

data::Batch EmptyBatch(int64_t batch, int64_t positions) {
  return {at::empty({batch, positions}, at::kLong), at::empty({batch, positions}, at::kLong),
          at::ones({batch, positions}, at::kFloat)};
}

}  // namespace

config::ModelConfig LlamaConfig(const std::string& name, int64_t seq, int64_t layers) {
  config::ModelConfig m;
  m.num_layers = 32;
  m.hidden_size = 4096;
  m.ffn_hidden_size = 14336;
  m.num_attention_heads = 32;
  m.num_query_groups = 8;
  m.kv_channels = 128;
  m.untie_embeddings_and_output_weights = true;
  if (name == "3b") {
    m.num_layers = 28;
    m.hidden_size = 3072;
    m.ffn_hidden_size = 8192;
    m.num_attention_heads = 24;
    m.untie_embeddings_and_output_weights = false;
  } else if (name == "1b") {
    m.num_layers = 16;
    m.hidden_size = 2048;
    m.ffn_hidden_size = 8192;
    m.kv_channels = 64;
    m.untie_embeddings_and_output_weights = false;
  }
  if (layers > 0) m.num_layers = layers;
  m.padded_vocab_size = 128256;
  m.seq_length = m.max_position_embeddings = seq;
  m.rotary_base = 500000;
  m.params_dtype = config::DType::kBf16;
  return m;
}

void UseRecipe(const std::string& recipe, config::ModelConfig& m) {
  if (recipe == "bf16") return;
  m.fp8.recipe = recipe == "delayed" ? config::Fp8Recipe::kDelayed : config::Fp8Recipe::kTensorwise;
  m.fp8.amax_history_len = 1024;
  m.fp8.amax_algo = config::AmaxAlgo::kMax;
  m.fp8.round_outputs_to_bf16 = true;
}

RandomText::RandomText(int64_t vocab) {
  std::vector<double> weights;
  for (int64_t i = 0; i < vocab; ++i) weights.push_back(1.0 / static_cast<double>(i + 3));
  draw_ = std::discrete_distribution<int64_t>(weights.begin(), weights.end());
}

data::Batch RandomText::Next(int64_t batch, int64_t positions) {
  data::Batch result = EmptyBatch(batch, positions);
  auto* const tokens = result.tokens_BS.data_ptr<int64_t>();
  auto* const labels = result.labels_BS.data_ptr<int64_t>();
  for (int64_t i = 0; i < batch * positions; ++i) {
    tokens[i] = draw_(engine_);
    if (i > 0) labels[i - 1] = tokens[i];
    labels[i] = tokens[i];
  }
  return result;
}

FileText::FileText(const std::string& file, int64_t vocab) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  const std::streamoff bytes = stream ? static_cast<std::streamoff>(stream.tellg()) : -1;
  if (bytes < 8) throw std::runtime_error(file + ": no file of at least two int32 tokens");
  tokens_.resize(static_cast<size_t>(bytes) / sizeof(int32_t));
  stream.seekg(0);
  stream.read(reinterpret_cast<char*>(tokens_.data()),
              static_cast<std::streamsize>(tokens_.size() * sizeof(int32_t)));
  for (const int32_t token : tokens_) {
    if (token >= 0 && token < vocab) continue;
    throw std::runtime_error(file + ": token " + std::to_string(token) +
                             " is outside the vocabulary of " + std::to_string(vocab));
  }
}

data::Batch FileText::Next(int64_t batch, int64_t positions) {
  data::Batch result = EmptyBatch(batch, positions);
  auto* const tokens = result.tokens_BS.data_ptr<int64_t>();
  auto* const labels = result.labels_BS.data_ptr<int64_t>();
  for (int64_t i = 0; i < batch * positions; ++i) {
    tokens[i] = tokens_[next_];
    next_ = (next_ + 1) % tokens_.size();
    labels[i] = tokens_[next_];
  }
  return result;
}

}  // namespace muster::bench
