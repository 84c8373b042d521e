#include "trainer/config/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/words.h"
#include "trainer/config/bytes.h"
#include "trainer/config/error.h"

namespace muster::config {
namespace {

using ::testing::HasSubstr;

struct Resolved {
  CommandLine line;
  RunSizes sizes;
};

Resolved ResolveText(const std::string& text, int64_t world = 1) {
  Resolved r{Parse(SplitWords(text)), {}};
  r.sizes = Resolve(world, r.line);
  return r;
}

std::string ErrorOf(const std::string& text, int64_t world = 1) {
  try {
    ResolveText(text, world);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

const std::string kOk = kTiny;

TEST(Resolve, DerivesTheModel) {
  const auto [line, sizes] = ResolveText(kOk + "--seed 7");
  const ModelConfig& m = line.config.model;
  EXPECT_EQ(m.kv_channels, 16);
  EXPECT_EQ(m.ffn_hidden_size, 128);  // int(4 * 64 * 2/3 / 64) * 64
  EXPECT_EQ(m.num_query_groups, 4);
  EXPECT_EQ(m.padded_vocab_size, 512);
  EXPECT_EQ(m.seed, 7u);
  EXPECT_EQ(m.params_dtype, DType::kFp32);
  EXPECT_EQ(m.fp8.recipe, Fp8Recipe::kNone);
  EXPECT_EQ(line.origins.at("kv-channels"), "derived");
}

TEST(Resolve, QueryGroupsAreOneUnlessGiven) {
  EXPECT_EQ(ResolveText(kOk + "--group-query-attention").line.config.model.num_query_groups, 1);
}

TEST(Resolve, QueryGroupsCountOnlyWithTheFlag) {
  EXPECT_EQ(ResolveText(kOk + "--num-query-groups 2").line.config.model.num_query_groups, 4);
  EXPECT_EQ(ResolveText(kOk + "--group-query-attention --num-query-groups 2")
                .line.config.model.num_query_groups,
            2);
}

TEST(Resolve, BatchSizes) {
  const auto alone = ResolveText(kOk);
  EXPECT_EQ(alone.line.config.global_batch_size, 1);
  const auto four = ResolveText(kOk + "--global-batch-size 24", 4);
  EXPECT_EQ(four.sizes.data_parallel_size, 4);
  EXPECT_EQ(four.sizes.num_microbatches, 6);
  EXPECT_EQ(four.sizes.train_samples, 240);
  EXPECT_THAT(ErrorOf(kOk + "--global-batch-size 22", 4),
              HasSubstr("data parallel size 4 = 4; nearest: 20 or 24"));
  EXPECT_THAT(ErrorOf(kOk + "--global-batch-size 3", 4), HasSubstr("nearest: 4"));
}

TEST(Resolve, ScheduleCountsSamples) {
  const auto iters =
      ResolveText(kOk + "--global-batch-size 4 --lr-warmup-iters 2 --lr-decay-iters 8");
  EXPECT_EQ(iters.sizes.lr_warmup_samples, 8);
  EXPECT_EQ(iters.sizes.lr_decay_samples, 32);
  EXPECT_EQ(ResolveText(kOk).sizes.lr_decay_samples, 10);
  EXPECT_EQ(ResolveText(kOk + "--lr-warmup-fraction 0.25").sizes.lr_warmup_samples, 2.5);

  std::string by_samples = kOk;
  by_samples.replace(by_samples.find("--train-iters 10"), 16, "--train-samples 10");
  const auto samples = ResolveText(by_samples + "--global-batch-size 4 --lr-warmup-samples 3");
  EXPECT_EQ(samples.sizes.train_iters, 2);  // the rest of 2 samples is dropped
  EXPECT_EQ(samples.sizes.lr_decay_samples, 10);
  EXPECT_EQ(samples.sizes.lr_warmup_samples, 3);
  EXPECT_THAT(ErrorOf(by_samples + "--lr-warmup-iters 3"), HasSubstr("--lr-warmup-samples"));
  EXPECT_THAT(ErrorOf(by_samples + "--global-batch-size 16"), HasSubstr("less than one iteration"));
}

TEST(Bytes, NumbersWithUnits) {
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("1024"), 1024);
  EXPECT_EQ(ParseBytes("8GiB"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("8 gib"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("8g"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("1.5TB"), 1'500'000'000'000);
  EXPECT_EQ(ParseBytes("512 KiB"), 512 << 10);
  for (const char* wrong : {"", "GiB", "8 pigs", "-1", "8 GiBs", "1e30", "nan", "8X"}) {
    EXPECT_FALSE(ParseBytes(wrong)) << wrong;
  }
}

TEST(Resolve, Precision) {
  const auto r =
      ResolveText(kOk + "--bf16 --fp8-format hybrid --fp8-recipe tensorwise --fp8-margin 1");
  EXPECT_EQ(r.line.config.model.params_dtype, DType::kBf16);
  EXPECT_EQ(r.line.config.model.fp8.recipe, Fp8Recipe::kTensorwise);
  EXPECT_EQ(r.line.config.model.fp8.margin, 1);
  EXPECT_TRUE(r.line.config.model.fp8.round_outputs_to_bf16);
}

TEST(Resolve, MomentsFollowTheDevice) {
  EXPECT_EQ(ResolveText(kOk).line.config.exp_avg_dtype, "fp32");
  EXPECT_EQ(ResolveText(kOk + "--device cuda --bf16").line.config.exp_avg_dtype, "bf16");
  EXPECT_EQ(
      ResolveText(kOk + "--device cuda --bf16 --exp-avg-dtype fp32").line.config.exp_avg_sq_dtype,
      "fp32");
}

TEST(Resolve, AdoptsSizesThatWereNotGiven) {
  CommandLine line = Parse(SplitWords(
      "--hidden-size 128 --seq-length 8 --micro-batch-size 1 --lr 1 --train-iters 1 --mock-data"));
  ModelConfig hf;
  hf.num_layers = 3;
  hf.hidden_size = 64;
  hf.ffn_hidden_size = 96;
  hf.num_attention_heads = 8;
  hf.num_query_groups = 2;
  hf.kv_channels = 16;
  hf.max_position_embeddings = 512;
  hf.padded_vocab_size = 500;
  hf.rotary_base = 5e5;
  hf.rope_scaling.enabled = true;
  AdoptModel(hf, line);
  Resolve(1, line);
  EXPECT_EQ(line.config.model.num_layers, 3);
  EXPECT_EQ(line.config.model.hidden_size, 128);  // given
  EXPECT_EQ(line.config.model.num_query_groups, 2);
  EXPECT_EQ(line.config.model.padded_vocab_size, 500);  // no padding rows in the softmax
  EXPECT_TRUE(line.config.model.rope_scaling.enabled);
  EXPECT_EQ(line.origins.at("num-layers"), "config.json");
}

TEST(Resolve, AdoptsTheRopeScalingThatWasNotGiven) {
  ModelConfig hf;
  hf.rope_scaling = {true, 32, 2, 3, 64};
  CommandLine given = Parse(SplitWords("--use-rope-scaling --rope-scaling-factor 16"));
  AdoptModel(hf, given);
  const RopeScaling& rope = given.config.model.rope_scaling;
  EXPECT_EQ(rope.factor, 16);
  EXPECT_EQ(rope.low_freq_factor, 2);
  EXPECT_EQ(rope.high_freq_factor, 3);
  EXPECT_EQ(rope.original_max_position_embeddings, 64);

  CommandLine bare = Parse(SplitWords("--use-rope-scaling"));
  AdoptModel(hf, bare);
  EXPECT_EQ(bare.config.model.rope_scaling.factor, 32);
  CommandLine only_flag = Parse(SplitWords("--use-rope-scaling"));
  AdoptModel(ModelConfig(), only_flag);
  EXPECT_TRUE(only_flag.config.model.rope_scaling.enabled);
}

TEST(Resolve, NeededFlags) {
  for (const std::string flag :
       {"--num-layers", "--hidden-size", "--num-attention-heads", "--seq-length",
        "--max-position-embeddings", "--micro-batch-size", "--lr", "--vocab-size"}) {
    std::string text = kOk;
    const size_t at = text.find(flag + " ");
    text.erase(at, text.find(' ', at + flag.size() + 1) + 1 - at);
    EXPECT_THAT(ErrorOf(text), HasSubstr(flag + " is needed"));
  }
}

struct Case {
  const char* extra;
  const char* says;
  int64_t world = 1;
};

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, SaysWhy) {
  EXPECT_THAT(ErrorOf(kOk + GetParam().extra, GetParam().world), HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Checks, Refused,
    testing::Values(
        Case{"--train-samples 5", "one of --train-iters and --train-samples"},
        Case{"--lr-warmup-samples 5", "--lr-warmup-iters"},
        Case{"--lr-warmup-fraction 0.1 --lr-warmup-iters 1", "excludes"},
        Case{"--lr-warmup-iters 10", "must end before the decay"},
        Case{"--min-lr 1", "--min-lr 1 is above --lr 0.001"},
        Case{"--decoupled-min-lr 1", "needs --decoupled-lr"},
        Case{"--decoupled-min-lr 1 --decoupled-lr 0.5", "above --decoupled-lr 0.5"},
        Case{"--seq-length 64", "above --max-position-embeddings 32"},
        Case{"--num-attention-heads 6",
             "not a multiple of --num-attention-heads 6; nearest: 60 or 66"},
        Case{"--group-query-attention --num-query-groups 3",
             "not a multiple of --num-query-groups 3"},
        Case{"--kv-channels 15", "even"}, Case{"--rotary-percent 0.5", "use 1.0"},
        Case{"--attention-dropout 0.1", "must be 0"}, Case{"--hidden-dropout 0.1", "must be 0"},
        Case{"--fp16", "use --bf16"}, Case{"--bf16 --params-dtype fp32", "disagree"},
        Case{"--fp8-param-gather", "needs --fp8-format"},
        Case{"--device cuda", "computes in bf16 or FP8: add --bf16"},
        Case{"--device cuda --bf16 --grad-reduce-in-bf16", "add --fp8-format hybrid"},
        Case{"--device cuda --bf16 --reset-position-ids", "--reset-position-ids: "},
        Case{"--exp-avg-dtype bf16", "--exp-avg-dtype bf16 goes with --device cuda"},
        Case{"--device cuda --bf16 --exp-avg-sq-dtype fp32", "one precision"},
        Case{"--fp8-format hybrid --params-dtype fp64", "fp32 or bf16"},
        Case{"--fp8-format hybrid --ffn-hidden-size 100", "nearest: 96 or 112"},
        Case{"--fp8-format hybrid --seq-length 31", "multiple of 8"},
        Case{"--fp8-format hybrid --kv-channels 4 --group-query-attention",
             "2 * num-query-groups) 24: FP8 needs a multiple of 16"},
        Case{"--params-dtype fp64 --grad-reduce-in-bf16", "fp32 or bf16"},
        Case{"--seed 4294967296", "at most 4294967295"},
        Case{"--tensor-model-parallel-size 2", "nearest: 2"},
        Case{"--tensor-model-parallel-size 8", "--num-attention-heads 4 is not a multiple", 8},
        Case{"--tensor-model-parallel-size 2 --group-query-attention",
             "--num-query-groups 1 is not a multiple of --tensor-model-parallel-size 2", 2},
        Case{"--tensor-model-parallel-size 4 --ffn-hidden-size 90", "nearest: 88 or 92", 4},
        Case{"--tensor-model-parallel-size 4 --sequence-parallel --seq-length 30",
             "splits it over 4 ranks (tensor 4 * context 1); nearest: 28 or 32", 4},
        Case{"--tensor-model-parallel-size 2 --device cuda --bf16", "data parallel only", 2},
        Case{"--tensor-model-parallel-size 4 --fp8-format hybrid --ffn-hidden-size 96",
             "of 4 tensor-parallel ranks; nearest: 64 or 128", 4},
        Case{"--tensor-model-parallel-size 4294967296 --pipeline-model-parallel-size 4294967296",
             "--tensor-model-parallel-size 4294967296: must be at most 1048576"},
        Case{"--pipeline-model-parallel-size 4", "--num-layers 2: 2 do not split evenly", 4},
        Case{"--pipeline-model-parallel-size 2 --decoder-last-pipeline-num-layers 3",
             "do not make up 2 layers", 2},
        Case{"--decoder-first-pipeline-num-layers 1", "needs --pipeline-model-parallel-size above"},
        Case{"--pipeline-model-parallel-size 2 --account-for-loss-in-pipeline-split",
             "--num-layers 2 and 1 for embedding and loss: 3 do not split", 2},
        Case{"--pipeline-model-parallel-size 3 --num-layers 8 --decoder-last-pipeline-num-layers 1",
             "leaves 7 layers, which do not split evenly over the other 2 stages", 3},
        Case{"--pipeline-model-parallel-size 2 --account-for-loss-in-pipeline-split "
             "--decoder-first-pipeline-num-layers 1",
             "exclude --account-for", 2},
        Case{"--context-parallel-size 2 --seq-length 30", "into 4 chunks; nearest: 28 or 32", 4},
        Case{"--context-parallel-size 2 --reset-attention-mask --tokenizer-type NullTokenizer",
             "--reset-attention-mask: context parallelism", 2},
        Case{"--context-parallel-size 2 --fp8-format hybrid --seq-length 8",
             "multiple of 8 on each of 2 context-parallel ranks", 2},
        Case{"--overlap-param-gather", "needs --use-distributed-optimizer"},
        Case{"--overlap-param-gather --use-distributed-optimizer", "needs --overlap-grad-reduce"},
        Case{"--num-layers-per-virtual-pipeline-stage 1", "2 virtual stages need --pipeline"},
        Case{"--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2",
             "1 layers of a pipeline stage do not split evenly over its 2 virtual stages", 2},
        Case{"--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
             "--num-layers 4 --global-batch-size 3",
             "3 micro-batches of an iteration: virtual stages need a multiple", 2},
        Case{"--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 "
             "--num-virtual-stages-per-pipeline-rank 2",
             "excludes --num-virtual-stages-per-pipeline-rank", 2},
        Case{"--microbatch-group-size-per-virtual-pipeline-stage 4", "needs virtual stages"},
        Case{"--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
             "--num-layers 4 --global-batch-size 8 "
             "--microbatch-group-size-per-virtual-pipeline-stage 1",
             "must be from 2 (stages) to 8", 2},
        Case{"--rampup-batch-size 16 16 1000", "constant in this version"},
        Case{"--save-interval 5", "--save-interval needs --save"},
        Case{"--finetune", "--finetune needs --load"},
        Case{"--data-path a", "--mock-data excludes --data-path"},
        Case{"--data-args-path a", "--mock-data excludes --data-args-path"},
        Case{"--train-data-path a", "--mock-data excludes --train-data-path"},
        Case{"--per-split-data-args-path a", "--mock-data excludes --per-split-data-args-path"},
        Case{"--train-iters 4000000000000000000", "--train-iters 4000000000000000000 "},
        Case{"--train-iters 9223372036854775807 --global-batch-size 8",
             "--global-batch-size 8 is more than"},
        Case{"--lr-warmup-iters 4000000000000000000", "--lr-warmup-iters 40000"},
        Case{"--lr-decay-iters 4000000000000000000", "--lr-decay-iters 40000"},
        Case{"--eval-iters 9223372036854775807 --eval-interval 1", "--eval-iters 92233"},
        Case{"--eval-iters 4000000000000000000", "--eval-iters of all evaluations"}));

// The flags of kTiny with real data.
TEST(Resolve, OneListExcludesTheOther) {
  std::string text = kOk;
  text.erase(text.find("--mock-data"));
  EXPECT_THAT(ErrorOf(text + "--data-path a --train-data-path b"),
              HasSubstr("--data-path excludes --train-data-path"));
}

TEST(Resolve, DataIsNeeded) {
  std::string text = kOk;
  text.erase(text.find("--mock-data"));
  EXPECT_THAT(ErrorOf(text), HasSubstr("no data"));
}

}  // namespace
}  // namespace muster::config
