#include "trainer/loop/flops.h"

#include <gtest/gtest.h>

namespace muster::loop {
namespace {

// The figures of reference tables: FLOP per token and per iteration of 128 samples.
TEST(Flops, Llama3_8b) {
  config::ModelConfig model;
  model.num_layers = 32;
  model.hidden_size = 4096;
  model.ffn_hidden_size = 14336;
  model.num_attention_heads = 32;
  model.num_query_groups = 8;
  model.kv_channels = 128;
  model.seq_length = 8192;
  model.padded_vocab_size = 128256;
  EXPECT_NEAR(FlopsPerIteration(model, 1) / 8192, 5.14704e10, 5e5);
  EXPECT_NEAR(FlopsPerIteration(model, 128), 5.39706e16, 5e11);
}

}  // namespace
}  // namespace muster::loop
