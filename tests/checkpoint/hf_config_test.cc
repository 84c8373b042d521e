#include "trainer/checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "trainer/checkpoint/durable_file.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

config::ModelConfig Golden(const std::string& name) {
  const std::filesystem::path golden = std::getenv("MUSTER_GOLDEN");
  return ModelFromHfConfig(ReadText(golden / "llama/hf" / name));
}

TEST(HfConfig, BothLayoutsSayTheSame) {
  for (const char* name : {"config.json", "config_classic.json"}) {
    const config::ModelConfig model = Golden(name);
    EXPECT_EQ(model.num_layers, 4);
    EXPECT_EQ(model.hidden_size, 64);
    EXPECT_EQ(model.ffn_hidden_size, 160);
    EXPECT_EQ(model.num_attention_heads, 8);
    EXPECT_EQ(model.num_query_groups, 4);
    EXPECT_EQ(model.kv_channels, 16);
    EXPECT_EQ(model.padded_vocab_size, 512);
    EXPECT_EQ(model.rotary_base, 500000);
    EXPECT_EQ(model.norm_epsilon, 1e-5);
    EXPECT_TRUE(model.untie_embeddings_and_output_weights);
    EXPECT_FALSE(model.rope_scaling.enabled);
  }
}

TEST(HfConfig, BothLayoutsOfRopeScaling) {
  for (const char* name : {"config_llama3rope.json", "config_llama3rope_classic.json"}) {
    const config::ModelConfig model = Golden(name);
    EXPECT_TRUE(model.rope_scaling.enabled);
    EXPECT_EQ(model.rope_scaling.factor, 8);
    EXPECT_EQ(model.rope_scaling.low_freq_factor, 1);
    EXPECT_EQ(model.rope_scaling.high_freq_factor, 4);
    EXPECT_EQ(model.rope_scaling.original_max_position_embeddings, 64);
    EXPECT_EQ(model.rotary_base, 500000);
  }
}

TEST(HfConfig, RoundTrip) {
  for (const char* name : {"config.json", "config_llama3rope.json"}) {
    const config::ModelConfig model = Golden(name);
    const config::ModelConfig again = ModelFromHfConfig(HfConfigFromModel(model, 512, "float32"));
    EXPECT_EQ(again.num_query_groups, model.num_query_groups);
    EXPECT_EQ(again.kv_channels, model.kv_channels);
    EXPECT_EQ(again.rotary_base, model.rotary_base);
    EXPECT_EQ(again.rope_scaling.enabled, model.rope_scaling.enabled);
    EXPECT_EQ(again.rope_scaling.original_max_position_embeddings,
              model.rope_scaling.original_max_position_embeddings);
    EXPECT_EQ(again.untie_embeddings_and_output_weights, model.untie_embeddings_and_output_weights);
  }
}

std::string ErrorOf(const std::string& json) {
  try {
    ModelFromHfConfig(json);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "no error";
}

// A sound config with `change` merged into it.
std::string Changed(const std::string& change) {
  nlohmann::json json =
      nlohmann::json::parse(HfConfigFromModel(Golden("config.json"), 512, "float32"));
  json.merge_patch(nlohmann::json::parse(change));
  return json.dump();
}

TEST(HfConfig, RefusesNumbersThatMakeNoModel) {
  using ::testing::HasSubstr;
  EXPECT_EQ(ErrorOf(Changed("{}")), "no error");
  EXPECT_THAT(ErrorOf(Changed(R"({"hidden_size": 0})")), HasSubstr("not positive"));
  EXPECT_THAT(ErrorOf(Changed(R"({"head_dim": -16})")), HasSubstr("not positive"));
  EXPECT_THAT(ErrorOf(Changed(R"({"num_attention_heads": 0})")), HasSubstr("not positive"));
  EXPECT_THAT(ErrorOf(Changed(R"({"rope_theta": 0})")), HasSubstr("'rope_theta'"));
  EXPECT_THAT(ErrorOf(Changed(R"({"rms_norm_eps": -1e-5})")), HasSubstr("'rms_norm_eps'"));
  const std::string scaling = R"({"rope_scaling": {"rope_type": "llama3", "factor": 8,
      "original_max_position_embeddings": 64, "low_freq_factor": )";
  EXPECT_EQ(ErrorOf(Changed(scaling + R"(1, "high_freq_factor": 4}})")), "no error");
  EXPECT_THAT(ErrorOf(Changed(scaling + R"(4, "high_freq_factor": 4}})")),
              HasSubstr("high_freq_factor > low_freq_factor"));
}

TEST(HfConfig, RefusesQuantisedWeights) {
  std::string none = Changed("{}");
  EXPECT_EQ(ErrorOf(none.insert(1, R"("quantization_config": null,)")), "no error");
  EXPECT_THAT(ErrorOf(Changed(R"({"quantization_config": {"quant_method": "fp8"}})")),
              ::testing::HasSubstr("quantised weights are not supported"));
}

TEST(HfConfig, RefusesOtherModels) {
  using ::testing::HasSubstr;
  EXPECT_THAT(ErrorOf("nonsense"), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("'model_type' is missing"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "qwen2"})"), HasSubstr("wanted 'llama'"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "llama", "mlp_bias": true})"), HasSubstr("biases"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "llama"})"), HasSubstr("'num_hidden_layers' is missing"));
  EXPECT_THAT(ErrorOf(R"({"model_type": "llama", "num_hidden_layers": "x"})"),
              HasSubstr("has the value \"x\""));
}

}  // namespace
}  // namespace muster::checkpoint
