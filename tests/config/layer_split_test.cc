#include "trainer/config/layer_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/config/error.h"

namespace muster::config {
namespace {

using ::testing::ElementsAre;

TrainConfig Layers(int64_t layers, int64_t stages) {
  TrainConfig config;
  config.model.num_layers = layers;
  config.pipeline_model_parallel_size = stages;
  return config;
}

TEST(LayerSplit, EqualStages) {
  EXPECT_THAT(SplitLayers(Layers(8, 1)), ElementsAre(ElementsAre(8)));
  EXPECT_THAT(SplitLayers(Layers(8, 4)),
              ElementsAre(ElementsAre(2), ElementsAre(2), ElementsAre(2), ElementsAre(2)));
}

TEST(LayerSplit, ChunksByNumberOrByLayers) {
  TrainConfig config = Layers(12, 2);
  config.num_virtual_stages_per_pipeline_rank = 3;
  EXPECT_THAT(SplitLayers(config), ElementsAre(ElementsAre(2, 2, 2), ElementsAre(2, 2, 2)));
  config = Layers(12, 2);
  config.num_layers_per_virtual_pipeline_stage = 3;
  EXPECT_THAT(SplitLayers(config), ElementsAre(ElementsAre(3, 3), ElementsAre(3, 3)));
  config.num_layers_per_virtual_pipeline_stage = 4;
  EXPECT_THROW(SplitLayers(config), ConfigError);
}

TEST(LayerSplit, UnevenEnds) {
  TrainConfig config = Layers(9, 4);
  config.decoder_last_pipeline_num_layers = 0;
  EXPECT_THAT(SplitLayers(config),
              ElementsAre(ElementsAre(3), ElementsAre(3), ElementsAre(3), ElementsAre(0)));
  config.decoder_first_pipeline_num_layers = 1;
  config.decoder_last_pipeline_num_layers = 2;
  EXPECT_THAT(SplitLayers(config),
              ElementsAre(ElementsAre(1), ElementsAre(3), ElementsAre(3), ElementsAre(2)));
  config = Layers(12, 2);
  config.decoder_first_pipeline_num_layers = 8;
  config.num_virtual_stages_per_pipeline_rank = 2;
  EXPECT_THAT(SplitLayers(config), ElementsAre(ElementsAre(4, 4), ElementsAre(2, 2)));
}

TEST(LayerSplit, EmbeddingAndLossCountAsLayers) {
  TrainConfig config = Layers(14, 4);
  config.account_for_embedding_in_pipeline_split = true;
  config.account_for_loss_in_pipeline_split = true;
  EXPECT_THAT(SplitLayers(config),
              ElementsAre(ElementsAre(3), ElementsAre(4), ElementsAre(4), ElementsAre(3)));
  config.num_virtual_stages_per_pipeline_rank = 2;
  EXPECT_THAT(SplitLayers(config), ElementsAre(ElementsAre(1, 2), ElementsAre(2, 2),
                                               ElementsAre(2, 2), ElementsAre(2, 1)));
}

}  // namespace
}  // namespace muster::config
