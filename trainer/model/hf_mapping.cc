#include "trainer/model/hf_mapping.h"

#include <algorithm>
#include <stdexcept>
#include <string_view>

#include "trainer/model/parameter_spec.h"

namespace muster::model {
namespace {

// How one of our tensors is made of Hugging Face's.
enum class Layout { kSame, kVocabulary, kNorm, kQkv, kGateUp };

struct Mapping {
  Layout layout;
  std::vector<std::string> names;  // Hugging Face's
};

Mapping MapLayerTensor(std::string_view name, const std::string& prefix) {
  if (name == "self_attention.linear_qkv.layer_norm_weight") {
    return {Layout::kNorm, {prefix + "input_layernorm.weight"}};
  }
  if (name == "self_attention.linear_qkv.weight") {
    return {Layout::kQkv,
            {prefix + "self_attn.q_proj.weight", prefix + "self_attn.k_proj.weight",
             prefix + "self_attn.v_proj.weight"}};
  }
  if (name == "self_attention.linear_proj.weight") {
    return {Layout::kSame, {prefix + "self_attn.o_proj.weight"}};
  }
  if (name == "mlp.linear_fc1.layer_norm_weight") {
    return {Layout::kNorm, {prefix + "post_attention_layernorm.weight"}};
  }
  if (name == "mlp.linear_fc1.weight") {
    return {Layout::kGateUp, {prefix + "mlp.gate_proj.weight", prefix + "mlp.up_proj.weight"}};
  }
  if (name == "mlp.linear_fc2.weight") {
    return {Layout::kSame, {prefix + "mlp.down_proj.weight"}};
  }
  throw std::logic_error("no Hugging Face name for '" + std::string(name) + "'");
}

Mapping MapTensor(const std::string& name) {
  if (name == kEmbeddingName) return {Layout::kVocabulary, {"model.embed_tokens.weight"}};
  if (name == kHeadName) return {Layout::kVocabulary, {"lm_head.weight"}};
  if (name == kFinalNormName) return {Layout::kNorm, {"model.norm.weight"}};
  const size_t layer_start = LayerPrefix(0).size() - 2;  // "decoder.layers." without "0."
  const size_t layer_end = name.find('.', layer_start);
  const std::string layer = name.substr(layer_start, layer_end - layer_start);
  return MapLayerTensor(std::string_view(name).substr(layer_end + 1),
                        "model.layers." + layer + ".");
}

std::string ShapeText(at::IntArrayRef sizes) {
  std::string text = "[";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

void RequireShape(const std::string& name, const at::Tensor& tensor, at::IntArrayRef expected) {
  if (tensor.sizes() == expected) return;
  throw std::invalid_argument("tensor '" + name + "' has shape " + ShapeText(tensor.sizes()) +
                              ", the model needs " + ShapeText(expected));
}

// Anything but plain numbers is a quantised weight, whose scales lie in other tensors.
void RequirePlain(const std::string& name, const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
    case at::kBFloat16:
    case at::kHalf:
    case at::kDouble:
      return;
    default:
      throw std::invalid_argument("tensor '" + name + "' is " +
                                  c10::toString(tensor.scalar_type()) +
                                  ": quantised weights are not supported");
  }
}

// Views of our tensor, one for each Hugging Face tensor, whose rows in order are that tensor's
// rows. `vocab_size`: rows of embedding and head.
std::vector<at::Tensor> Parts(const config::ModelConfig& config, Layout layout,
                              const at::Tensor& ours, int64_t vocab_size) {
  switch (layout) {
    case Layout::kVocabulary:
      return {ours.narrow(0, 0, vocab_size)};
    case Layout::kGateUp:
      return {ours.narrow(0, 0, config.ffn_hidden_size),
              ours.narrow(0, config.ffn_hidden_size, config.ffn_hidden_size)};
    case Layout::kQkv: {
      const int64_t heads = config.num_attention_heads / config.num_query_groups;
      const at::Tensor grouped =
          ours.view({config.num_query_groups, heads + 2, config.kv_channels, ours.size(1)});
      return {grouped.narrow(1, 0, heads), grouped.narrow(1, heads, 1),
              grouped.narrow(1, heads + 1, 1)};
    }
    case Layout::kSame:
    case Layout::kNorm:
      break;
  }
  return {ours};
}

}  // namespace

void LoadHfWeights(const config::ModelConfig& config, const HfSource& source,
                   std::vector<Parameter>& parameters) {
  for (Parameter& parameter : parameters) {
    const Mapping mapping = MapTensor(parameter.name);
    const at::Tensor& ours = parameter.value;
    std::vector<at::Tensor> theirs;
    for (const std::string& name : mapping.names) theirs.push_back(source(name));
    int64_t vocab_size = ours.size(0);
    if (mapping.layout == Layout::kVocabulary && theirs[0].dim() == 2) {
      vocab_size = std::min(vocab_size, theirs[0].size(0));
    }
    const std::vector<at::Tensor> parts = Parts(config, mapping.layout, ours, vocab_size);
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<int64_t> shape =
          ours.dim() == 1 ? std::vector<int64_t>{ours.size(0)}
                          : std::vector<int64_t>{parts[i].numel() / ours.size(1), ours.size(1)};
      RequirePlain(mapping.names[i], theirs[i]);
      RequireShape(mapping.names[i], theirs[i], shape);
      parts[i].copy_(theirs[i].reshape(parts[i].sizes()));
    }
    if (mapping.layout == Layout::kNorm && config.apply_layernorm_1p) ours.sub_(1);
  }
}

NamedTensors ToHf(const config::ModelConfig& config, const std::vector<Parameter>& parameters,
                  HfKind kind, int64_t vocab_size) {
  NamedTensors result;
  for (const Parameter& parameter : parameters) {
    const Mapping mapping = MapTensor(parameter.name);
    at::Tensor ours = kind == HfKind::kWeights ? parameter.value : parameter.grad;
    const bool shift = mapping.layout == Layout::kNorm && config.apply_layernorm_1p;
    if (shift && kind == HfKind::kWeights) ours = ours.add(1);
    const std::vector<at::Tensor> parts = Parts(config, mapping.layout, ours, vocab_size);
    for (size_t i = 0; i < parts.size(); ++i) {
      const at::Tensor& part = parts[i];
      result.emplace_back(mapping.names[i],
                          part.dim() > 2 ? part.reshape({-1, ours.size(1)}) : part);
    }
  }
  return result;
}

}  // namespace muster::model
