#include "controller/plan/model_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_testing.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ModelShape Read(const std::vector<std::pair<std::string, std::string>>& more) {
  const ModelReading reading = ReadModel(Trainer8b("a slots=8\n", Sized(1, 1, 1, 1, 8), more));
  EXPECT_TRUE(reading.shape.has_value()) << reading.why_not;
  return reading.shape.value_or(ModelShape{});
}

TEST(FlagReader, FlagsWinOverTheCommand) {
  v1::JobSpec spec = Job("a slots=1\n", {"python", "--lr=3", "--n", "1", "--n", "2", "--neg", "-5",
                                         "--split", "99", "1", "--bare"});
  const FlagReader flags(spec);
  EXPECT_EQ(flags.Text("lr"), "3");
  EXPECT_EQ(flags.Count("n"), 2U);  // the last one, as argparse
  EXPECT_EQ(flags.Number("neg"), -5);
  EXPECT_THAT(*flags.Find("split"), ElementsAre("99", "1"));
  EXPECT_TRUE(flags.Has("bare"));
  EXPECT_FALSE(flags.Has("ba"));
  EXPECT_FALSE(flags.Count("bare").has_value());
  v1::Flag& flag = *spec.add_flags();
  flag.set_name("n");
  flag.add_values("7");
  EXPECT_EQ(flags.Count("n"), 7U);
}

TEST(ReadModel, The8b) {
  const ModelShape m = Read({});
  EXPECT_EQ(m.layers, 32U);
  EXPECT_EQ(m.head_dim, 128U);
  EXPECT_EQ(m.groups, 8U);
  EXPECT_FALSE(m.tied);
  EXPECT_TRUE(m.fp8 && m.fp8_primary);
  EXPECT_EQ(m.grad_bytes, 4);
  EXPECT_EQ(m.master_bytes, 4);
  EXPECT_TRUE(m.distributed_optimizer);
}

TEST(ReadModel, PrecisionFlags) {
  EXPECT_EQ(Read({{"grad-reduce-in-bf16", ""}}).grad_bytes, 2);
  const ModelShape m = Read({{"exp-avg-dtype", "bf16"}, {"exp-avg-sq-dtype", "fp8"}});
  EXPECT_EQ(m.exp_avg_bytes, 2);
  EXPECT_EQ(m.exp_avg_sq_bytes, 1);
}

TEST(ReadModel, RecomputeFlags) {
  Recompute r = Read({{"recompute-granularity", "full"},
                      {"recompute-method", "block"},
                      {"recompute-num-layers", "5"}})
                    .recompute;
  EXPECT_TRUE(r.full);
  EXPECT_EQ(r.full_layers, 5U);
  r = Read({{"recompute-granularity", "selective"}, {"recompute-modules", "layernorm"}}).recompute;
  EXPECT_TRUE(r.norms && !r.full && !r.attention && !r.mlp);
  r = Read({{"recompute-granularity", "selective"}}).recompute;  // Megatron's default module
  EXPECT_TRUE(r.attention && !r.norms && !r.activation);
  r = Read({{"recompute-granularity", "selective"}, {"recompute-modules", "mlp_act"}}).recompute;
  EXPECT_TRUE(r.activation && !r.mlp);
}

// muster-train's own: on GPUs in bf16 it never keeps SwiGLU's output.
TEST(ReadModel, RecomputeOfTheTrainer) {
  EXPECT_FALSE(Read({{"device", "cuda"}}).recompute.activation);
  v1::JobSpec spec =
      Job("a slots=1\n", {"muster-train", "--num-layers", "2", "--hidden-size", "64",
                          "--num-attention-heads", "4", "--seq-length", "128", "--device", "cuda"});
  EXPECT_TRUE(ReadModel(spec).shape.value().recompute.activation);
}

// A Megatron command of another program: bf16 weights stay beside the FP8 ones unless they are
// gathered as FP8, and the MLP is gated only with --swiglu.
TEST(ReadModel, OfAnyCommand) {
  v1::JobSpec spec = Job("a slots=8\n", {"python", "pretrain_gpt.py", "--num-layers", "2",
                                         "--hidden-size", "64", "--num-attention-heads", "4",
                                         "--seq-length=128", "--fp8-format", "hybrid", "--bf16"});
  const ModelReading reading = ReadModel(spec);
  ASSERT_TRUE(reading.shape.has_value());
  EXPECT_EQ(reading.shape->ffn, 256U);
  EXPECT_FALSE(reading.shape->gated);
  EXPECT_TRUE(reading.shape->fp8 && !reading.shape->fp8_primary && reading.shape->tied);
  EXPECT_EQ(reading.shape->groups, 4U);
  EXPECT_EQ(reading.shape->vocab, 0U);
}

TEST(ReadModel, SaysWhatIsMissing) {
  EXPECT_THAT(ReadModel(Job("a slots=1\n", {"x", "--num-layers", "2"})).why_not,
              HasSubstr("--hidden-size, --num-attention-heads, --seq-length"));
  EXPECT_THAT(ReadModel(Job("a slots=1\n", {"x", "--num-layers", "two"})).why_not,
              HasSubstr("--num-layers"));
}

TEST(ReadModel, WidthsDoNotWrap) {
  v1::JobSpec spec = Job("a slots=1\n", {"x", "--num-layers", "2", "--num-attention-heads", "1",
                                         "--seq-length", "8", "--hidden-size", "1073741825"});
  EXPECT_THAT(ReadModel(spec).why_not, HasSubstr("beyond 2^32 - 1"));
}

// What muster-train would refuse at its start, on all ranks.
TEST(CheckModelFlags, ValuesThatCannotWork) {
  const auto error = [](const std::string& name, const std::string& value) {
    const v1::JobSpec spec = Trainer8b("a slots=8\n", Sized(1, 1, 1, 1, 8), {{name, value}});
    return std::string(MakePlan(spec).status().message());
  };
  for (const char* value : {"0", "abc", "-5", "4294967296", "1.5"}) {
    EXPECT_THAT(error("num-layers", value),
                HasSubstr("--num-layers '" + std::string(value) + "': it takes a whole number"));
  }
  for (const char* flag :
       {"num-attention-heads", "num-query-groups", "hidden-size", "kv-channels"}) {
    EXPECT_THAT(error(flag, "0"), HasSubstr("a whole number from 1"));
  }
  EXPECT_THAT(error("num-layers", ""), HasSubstr("--num-layers ''"));
  EXPECT_THAT(error("num-attention-heads", "48"), HasSubstr("4096 hidden units"));
  EXPECT_THAT(error("hidden-size", "4095"), HasSubstr("4095 hidden units"));
  EXPECT_THAT(error("num-query-groups", "24"), HasSubstr("24 query groups"));
  EXPECT_THAT(error("fp8-format", "bogus"), HasSubstr("hybrid or e4m3"));
  EXPECT_THAT(error("recompute-granularity", "bogus"), HasSubstr("full or selective"));
  EXPECT_THAT(error("recompute-method", "bogus"), HasSubstr("uniform or block"));
  EXPECT_THAT(error("rotary-base", "nan"), HasSubstr("a number from 1"));
  EXPECT_THAT(error("vp", "3"), HasSubstr("write vp in [parallel], or --vp N"));
  EXPECT_THAT(error("micro-batch", "3"), HasSubstr("micro_batch in [parallel], or --micro-batch"));
  EXPECT_EQ(error("kv-channels", "128"), "");
  EXPECT_EQ(error("decoder-first-pipeline-num-layers-of-another", "x"), "");
}

TEST(FlagReader, NoNumberIsNotANumber) {
  const v1::JobSpec spec = Job("a slots=1\n", {"x", "--a", "nan", "--b", "inf"});
  EXPECT_FALSE(FlagReader(spec).Number("a").has_value());
  EXPECT_FALSE(FlagReader(spec).Number("b").has_value());
}

}  // namespace
}  // namespace muster::plan
