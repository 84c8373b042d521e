#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/model_config.h"
#include "trainer/model/parameter.h"

// clang-format off
// Hugging Face's names and layout of a Llama's tensors, and ours:
//
//   model.embed_tokens.weight             embedding.word_embeddings.weight   rows beyond the vocabulary are padding
//   lm_head.weight                        output_layer.weight                likewise; absent when tied
//   model.norm.weight                     decoder.final_layernorm.weight     gamma; ours is gamma - 1 with layernorm-1p
//   model.layers.<i>. ...                 decoder.layers.<i>. ...
//     input_layernorm.weight                self_attention.linear_qkv.layer_norm_weight   gamma, as above
//     self_attn.{q,k,v}_proj.weight         self_attention.linear_qkv.weight   for each KV head the rows of its q heads, k, v
//     self_attn.o_proj.weight               self_attention.linear_proj.weight
//     post_attention_layernorm.weight       mlp.linear_fc1.layer_norm_weight   gamma, as above
//     mlp.{gate,up}_proj.weight             mlp.linear_fc1.weight              rows [gate; up]
//     mlp.down_proj.weight                  mlp.linear_fc2.weight
// clang-format on

namespace muster::model {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// The tensor of that name; throws (its own error) when there is none.
using HfSource = std::function<at::Tensor(const std::string& name)>;

// What the tensors are: norm weights shift by 1 with layernorm-1p, their gradients do not.
enum class HfKind { kWeights, kGradients };

// Copies every weight from `source`, in its own type, into `parameters` (of a model of `config`).
// Rows of embedding and head beyond those of the source keep their values. Throws
// std::invalid_argument, naming the tensor, when a shape differs or a weight is quantised.
void LoadHfWeights(const config::ModelConfig& config, const HfSource& source,
                   std::vector<Parameter>& parameters);

// The values (or gradients) as Hugging Face names and lays them out, in the parameters' order;
// `vocab_size`: the rows of embedding and head to keep. Tensors are copies or views of the
// parameters.
NamedTensors ToHf(const config::ModelConfig& config, const std::vector<Parameter>& parameters,
                  HfKind kind, int64_t vocab_size);

}  // namespace muster::model
