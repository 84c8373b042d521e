#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/model_config.h"

// The parameters of a Llama as its configuration determines them: names, shapes, initial values. No
// LibTorch here.

namespace muster::model {

// How tensor-parallel ranks split a parameter: dimension `dim` consists of `blocks` equal blocks,
// and each rank has an equal, consecutive share of every block.
struct Split {
  int dim = -1;        // -1: every rank has all of it
  int64_t blocks = 1;  // gate and up of fc1 are two
};

struct ParameterSpec {
  std::string name;  // Megatron's
  std::vector<int64_t> shape;
  double init_std = 0;  // standard deviation of the initial normal values; 0: all are init_value
  double init_value = 0;
  bool decoupled_lr = false;  // word embedding and language-model head
  Split split = {};
};

// A run of layers that are computed without a message in between, with what stands before and after
// them.
struct Chunk {
  int64_t first_layer = 0;
  int64_t end_layer = 0;  // one beyond the last
  bool embedding = true;
  bool head = true;  // final norm, head and loss

  friend bool operator==(const Chunk&, const Chunk&) = default;
};
Chunk WholeModel(const config::ModelConfig& config);

// Whole parameters, in registration order: embedding, layers, final norm, head (none when tied).
std::vector<ParameterSpec> ParameterSpecs(const config::ModelConfig& config);
// Those of a chunk. A tied head apart from the embedding has a copy of the embedding, in its place
// and under its name.
std::vector<ParameterSpec> ParameterSpecs(const config::ModelConfig& config, const Chunk& chunk);

// Names shared with checkpoints and the Hugging Face mapping.
inline constexpr char kEmbeddingName[] = "embedding.word_embeddings.weight";
inline constexpr char kFinalNormName[] = "decoder.final_layernorm.weight";
inline constexpr char kHeadName[] = "output_layer.weight";
std::string LayerPrefix(int64_t layer);  // "decoder.layers.<layer>."

// Throws std::invalid_argument (flag, value, reason) for sizes that make no model.
void Validate(const config::ModelConfig& config);

}  // namespace muster::model
