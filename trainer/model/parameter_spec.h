#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"

// The parameters of a Llama as its configuration determines them: names, shapes, initial values. No
// LibTorch here.

namespace muster::model {

struct ParameterSpec {
  std::string name;  // Megatron's
  std::vector<int64_t> shape;
  double init_std = 0;  // standard deviation of the initial normal values; 0: all are init_value
  double init_value = 0;
  bool decoupled_lr = false;  // word embedding and language-model head
};

// In registration order: embedding, layers, final norm, head (none when tied).
std::vector<ParameterSpec> ParameterSpecs(const config::ModelConfig& config);

// Names shared with checkpoints and the Hugging Face mapping.
inline constexpr char kEmbeddingName[] = "embedding.word_embeddings.weight";
inline constexpr char kFinalNormName[] = "decoder.final_layernorm.weight";
inline constexpr char kHeadName[] = "output_layer.weight";
std::string LayerPrefix(int64_t layer);  // "decoder.layers.<layer>."

// Throws std::invalid_argument (flag, value, reason) for sizes that make no model.
void Validate(const config::ModelConfig& config);

}  // namespace muster::model
