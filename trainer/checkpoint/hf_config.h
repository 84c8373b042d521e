#pragma once

#include <string>

#include "trainer/config/model_config.h"

// config.json of a Hugging Face Llama: both layouts of the rotary settings (`rope_theta` +
// `rope_scaling`, as published checkpoints have, and `rope_parameters` of transformers 5). Values
// only.

namespace muster::checkpoint {

// Sizes and numerics of the model; padded_vocab_size holds the file's vocab_size. Throws
// CheckpointError naming the key: not JSON, a key missing or of another type, a size that makes no
// model, a model that is not a Llama, has biases or quantised weights.
config::ModelConfig ModelFromHfConfig(const std::string& json);

// The text of a config.json in the classic layout, which every version of transformers reads.
// `vocab_size` is without padding; `torch_dtype` as Hugging Face names it: "float32", "bfloat16".
std::string HfConfigFromModel(const config::ModelConfig& model, int64_t vocab_size,
                              const std::string& torch_dtype);

}  // namespace muster::checkpoint
