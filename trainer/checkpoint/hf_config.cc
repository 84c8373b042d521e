#include "trainer/checkpoint/hf_config.h"

#include <nlohmann/json.hpp>

#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
T Require(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null())
    throw CheckpointError(std::string("'") + key + "' is missing");
  try {
    return it->get<T>();
  } catch (const Json::exception&) {
    throw CheckpointError(std::string("'") + key + "' has the value " + it->dump());
  }
}

template <class T>
T Get(const Json& json, const char* key, T fallback) {
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? fallback : Require<T>(json, key);
}

void CheckKind(const Json& json) {
  const auto type = Require<std::string>(json, "model_type");
  if (type != "llama") throw CheckpointError("'model_type' is '" + type + "', wanted 'llama'");
  const auto act = Get<std::string>(json, "hidden_act", "silu");
  if (act != "silu") throw CheckpointError("'hidden_act' is '" + act + "', wanted 'silu'");
  if (json.contains("quantization_config") && !json.at("quantization_config").is_null()) {
    throw CheckpointError(
        "'quantization_config' is set: quantised weights are not supported; use the bf16 folder");
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (Get(json, bias, false))
      throw CheckpointError(std::string("'") + bias + "' is set: biases are not supported");
  }
}

void ReadRope(const Json& json, config::ModelConfig& model) {
  const Json none = Json::object();
  const Json& parameters = json.contains("rope_parameters") ? json.at("rope_parameters") : none;
  const bool has_scaling = json.contains("rope_scaling") && json.at("rope_scaling").is_object();
  const Json& scaling = parameters.is_object() && !parameters.empty() ? parameters
                        : has_scaling                                 ? json.at("rope_scaling")
                                                                      : none;
  model.rotary_base = Get(scaling, "rope_theta", Get(json, "rope_theta", 10000.0));
  if (!(model.rotary_base > 0)) throw CheckpointError("'rope_theta' is not positive");
  const auto type =
      Get<std::string>(scaling, "rope_type", Get<std::string>(scaling, "type", "default"));
  if (type == "default") return;
  if (type != "llama3")
    throw CheckpointError("rotary scaling '" + type + "' is not supported, only 'llama3'");
  config::RopeScaling& rope = model.rope_scaling;
  rope.enabled = true;
  rope.factor = Require<double>(scaling, "factor");
  rope.low_freq_factor = Require<double>(scaling, "low_freq_factor");
  rope.high_freq_factor = Require<double>(scaling, "high_freq_factor");
  rope.original_max_position_embeddings =
      Require<int64_t>(scaling, "original_max_position_embeddings");
  if (!(rope.factor > 0) || !(rope.low_freq_factor > 0) ||
      !(rope.high_freq_factor > rope.low_freq_factor) ||
      rope.original_max_position_embeddings <= 0) {
    throw CheckpointError(
        "rotary scaling: wants factor > 0, high_freq_factor > low_freq_factor > 0 and a positive "
        "original_max_position_embeddings");
  }
}

config::ModelConfig Read(const Json& json) {
  CheckKind(json);
  config::ModelConfig model;
  model.num_layers = Require<int64_t>(json, "num_hidden_layers");
  model.hidden_size = Require<int64_t>(json, "hidden_size");
  model.ffn_hidden_size = Require<int64_t>(json, "intermediate_size");
  model.num_attention_heads = Require<int64_t>(json, "num_attention_heads");
  model.num_query_groups = Get(json, "num_key_value_heads", model.num_attention_heads);
  model.padded_vocab_size = Require<int64_t>(json, "vocab_size");
  model.max_position_embeddings = Require<int64_t>(json, "max_position_embeddings");
  if (model.num_attention_heads <= 0) throw CheckpointError("a size is not positive");
  model.kv_channels = Get(json, "head_dim", model.hidden_size / model.num_attention_heads);
  for (const int64_t size :
       {model.num_layers, model.hidden_size, model.ffn_hidden_size, model.num_query_groups,
        model.kv_channels, model.padded_vocab_size, model.max_position_embeddings}) {
    if (size <= 0) throw CheckpointError("a size is not positive");
  }
  model.norm_epsilon = Get(json, "rms_norm_eps", 1e-6);
  model.untie_embeddings_and_output_weights = !Get(json, "tie_word_embeddings", false);
  if (!(model.norm_epsilon >= 0)) throw CheckpointError("'rms_norm_eps' is negative");
  ReadRope(json, model);
  return model;
}

}  // namespace

config::ModelConfig ModelFromHfConfig(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw CheckpointError("not a JSON object");
  return Read(json);
}

std::string HfConfigFromModel(const config::ModelConfig& model, int64_t vocab_size,
                              const std::string& torch_dtype) {
  Json json;
  json["architectures"] = {"LlamaForCausalLM"};
  json["model_type"] = "llama";
  json["vocab_size"] = vocab_size;
  json["hidden_size"] = model.hidden_size;
  json["intermediate_size"] = model.ffn_hidden_size;
  json["num_hidden_layers"] = model.num_layers;
  json["num_attention_heads"] = model.num_attention_heads;
  json["num_key_value_heads"] = model.num_query_groups;
  json["head_dim"] = model.kv_channels;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = model.max_position_embeddings;
  json["initializer_range"] = model.init_method_std;
  json["rms_norm_eps"] = model.norm_epsilon;
  json["rope_theta"] = model.rotary_base;
  if (const config::RopeScaling& rope = model.rope_scaling; rope.enabled) {
    json["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", rope.factor},
        {"low_freq_factor", rope.low_freq_factor},
        {"high_freq_factor", rope.high_freq_factor},
        {"original_max_position_embeddings", rope.original_max_position_embeddings}};
  } else {
    json["rope_scaling"] = nullptr;
  }
  json["tie_word_embeddings"] = !model.untie_embeddings_and_output_weights;
  json["attention_bias"] = false;
  json["mlp_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["torch_dtype"] = torch_dtype;
  json["use_cache"] = true;
  return json.dump(2) + "\n";
}

}  // namespace muster::checkpoint
