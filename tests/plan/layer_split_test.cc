#include "controller/plan/layer_split.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_testing.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Counts = std::vector<std::vector<uint32_t>>;

Counts Split(const ModelShape& m, uint32_t pp, uint32_t vp = 1) {
  LayerSplit split;
  const auto wrong = SplitLayers(m, pp, vp, &split);
  EXPECT_FALSE(wrong.has_value()) << *wrong;
  return split.counts;
}

std::string Wrong(const ModelShape& m, uint32_t pp, uint32_t vp = 1) {
  return SplitLayers(m, pp, vp, nullptr).value_or("");
}

TEST(SplitLayers, Evenly) {
  ModelShape m = Llama8b();
  EXPECT_EQ(Split(m, 1), (Counts{{32}}));
  EXPECT_EQ(Split(m, 4), (Counts{{8}, {8}, {8}, {8}}));
  EXPECT_EQ(Split(m, 2, 4), (Counts{{4, 4, 4, 4}, {4, 4, 4, 4}}));
  EXPECT_THAT(Wrong(m, 3), HasSubstr("32 layers do not split evenly over PP 3"));
  EXPECT_THAT(Wrong(m, 4, 3),
              HasSubstr("8 layers of a stage (PP 4) do not split evenly over VP 3"));
}

TEST(SplitLayers, FirstAndLastStage) {
  ModelShape m = Llama8b();
  m.first_stage_layers = 7;
  m.last_stage_layers = 5;
  EXPECT_EQ(Split(m, 4), (Counts{{7}, {10}, {10}, {5}}));
  EXPECT_THAT(Wrong(m, 5), HasSubstr("leave 20, which do not split evenly over the other 3"));
  EXPECT_THAT(Wrong(m, 2), HasSubstr("do not make up 32 over PP 2"));
  EXPECT_THAT(Wrong(m, 1), HasSubstr("need a pipeline"));
  m.last_stage_layers = 25;
  EXPECT_EQ(Split(m, 2), (Counts{{7}, {25}}));
  m.last_stage_layers.reset();
  m.first_stage_layers = 2;
  EXPECT_EQ(Split(m, 4, 2), (Counts{{1, 1}, {5, 5}, {5, 5}, {5, 5}}));
  m.first_stage_layers = 31;
  m.last_stage_layers = 1;
  EXPECT_THAT(Wrong(m, 4, 1'000'000'000), HasSubstr("do not split evenly over VP 1000000000"));
  m.last_stage_layers.reset();
  m.first_stage_layers = 40;
  EXPECT_THAT(Wrong(m, 2), HasSubstr("do not make up 32"));
}

TEST(SplitLayers, EmbeddingAndLossInTheCount) {
  ModelShape m = Llama8b();
  m.layers = 126;
  EXPECT_THAT(Wrong(m, 8, 8), HasSubstr("126 layers do not split"));
  m.embedding_counts_as_layer = m.loss_counts_as_layer = true;
  const Counts counts = Split(m, 8, 8);
  EXPECT_THAT(counts.front(), ElementsAre(1, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(counts.back(), ElementsAre(2, 2, 2, 2, 2, 2, 2, 1));
  EXPECT_THAT(counts[3], ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
  m.first_stage_layers = 1;
  EXPECT_THAT(Wrong(m, 8), HasSubstr("exclude each other"));
}

TEST(SplitLayers, RangesFollowTheChunks) {
  LayerSplit split;
  ModelShape m = Llama8b();
  m.layers = 8;
  SplitLayers(m, 2, 2, &split);
  EXPECT_EQ(split.Ranges(0), "0-1, 4-5");
  EXPECT_EQ(split.Ranges(1), "2-3, 6-7");
  EXPECT_EQ(split.Layers(1), 4U);
  m.first_stage_layers = 1;
  SplitLayers(m, 2, 1, &split);
  EXPECT_EQ(split.Ranges(0), "0");
  EXPECT_EQ(split.Ranges(1), "1-7");
}

TEST(SplitLayers, CountsDoNotWrap) {
  ModelShape m = Llama8b();
  m.layers = 0xFFFFFFFF;
  m.embedding_counts_as_layer = true;  // 2^32 in all
  EXPECT_THAT(Wrong(m, 1), HasSubstr("more than a stage can have"));
  EXPECT_THAT(Wrong(m, 3), HasSubstr("do not split evenly over PP 3"));
  EXPECT_EQ(Split(m, 2), (Counts{{0x7FFFFFFF}, {0x80000000}}));
}

// Minutes, where each stage counts from the first layer.
TEST(SplitLayers, RangesOfVeryManyStages) {
  LayerSplit split;
  ModelShape m = Llama8b();
  m.layers = kMaxWorld;
  SplitLayers(m, kMaxWorld, 1, &split);
  size_t length = 0;
  for (uint32_t stage = 0; stage < kMaxWorld; ++stage) length += split.Ranges(stage).size();
  EXPECT_GT(length, 5U * kMaxWorld);
  EXPECT_EQ(split.Ranges(kMaxWorld - 1), std::to_string(kMaxWorld - 1));
}

TEST(CheckModel, HeadsAmongThemselves) {
  ModelShape m = Llama8b();
  m.groups = 12;
  EXPECT_THAT(*CheckModel(m, SomeSizes(1, 1, 1, 1, 1, 1)),
              HasSubstr("32 attention heads are not divisible by 12 query groups"));
  m = Llama8b();
  m.hidden = 4095;
  EXPECT_THAT(*CheckModel(m, SomeSizes(1, 1, 1, 1, 1, 1)),
              HasSubstr("4095 hidden units are not divisible by 32 attention heads"));
  m.head_dim_given = true;
  EXPECT_FALSE(CheckModel(m, SomeSizes(1, 1, 1, 1, 1, 1)).has_value());
}

TEST(CheckModel, WhatTpAndCpHaveToDivide) {
  ModelShape m = Llama8b();
  EXPECT_FALSE(CheckModel(m, SomeSizes(8, 2, 2, 1, 1, 1)).has_value());
  EXPECT_THAT(*CheckModel(m, SomeSizes(3, 1, 1, 1, 1, 1)), HasSubstr("32 attention heads"));
  EXPECT_THAT(*CheckModel(m, SomeSizes(16, 1, 1, 1, 1, 1)),
              HasSubstr("8 query groups are not divisible by TP 16"));
  m.ffn = 14337;
  EXPECT_THAT(*CheckModel(m, SomeSizes(2, 1, 1, 1, 1, 1)), HasSubstr("14337 MLP units"));
  m = Llama8b();
  m.seq = 8190;
  EXPECT_THAT(*CheckModel(m, SomeSizes(1, 1, 2, 1, 1, 1)), HasSubstr("2 x CP 2 = 4"));
  EXPECT_FALSE(CheckModel(m, SomeSizes(4, 1, 1, 1, 1, 1)).has_value());
  m.sequence_parallel = true;
  EXPECT_THAT(*CheckModel(m, SomeSizes(4, 1, 1, 1, 1, 1)), HasSubstr("sequence parallel"));
}

}  // namespace
}  // namespace muster::plan
