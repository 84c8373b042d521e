#pragma once

#include <cstdint>
#include <string>

// Sizes and numerics of a Llama model, as Megatron names them. Plain values: no LibTorch here.

namespace muster::config {

// Llama-3.1 frequency scaling (`--use-rope-scaling`, Hugging Face rope_type "llama3").
struct RopeScaling {
  bool enabled = false;
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t original_max_position_embeddings = 8192;
};

enum class Fp8Recipe { kNone, kDelayed, kTensorwise };
enum class Fp8Format { kHybrid, kE4m3 };
enum class AmaxAlgo { kMax, kMostRecent };

// `--fp8-*`.
struct Fp8Config {
  Fp8Recipe recipe = Fp8Recipe::kNone;
  Fp8Format format = Fp8Format::kHybrid;
  int64_t amax_history_len = 1;
  AmaxAlgo amax_algo = AmaxAlgo::kMostRecent;
  int margin = 0;
  bool round_outputs_to_bf16 = false;  // FP8 GEMMs' y and dx, and weights in use, pass through bf16
};

enum class DType { kFp32, kBf16, kFp64 };

struct ModelConfig {
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t ffn_hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_query_groups = 0;  // KV heads
  int64_t kv_channels = 0;       // head dimension
  int64_t padded_vocab_size = 0;
  int64_t seq_length = 0;
  int64_t max_position_embeddings = 0;
  double rotary_base = 10000.0;
  RopeScaling rope_scaling;
  double norm_epsilon = 1e-5;
  bool apply_layernorm_1p = false;  // weights hold gamma - 1
  bool untie_embeddings_and_output_weights = false;
  double init_method_std = 0.02;
  uint64_t seed = 1234;
  DType params_dtype =
      DType::kFp32;  // of the forward and backward; master weights and moments are fp32
  Fp8Config fp8;
};

}  // namespace muster::config
