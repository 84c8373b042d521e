#include "trainer/config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/config/words.h"
#include "trainer/config/error.h"
#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  try {
    Parse(SplitWords(text));
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::kConfig);
    return error.what();
  }
  return "no error";
}

TEST(FlagTable, NamesAndAliasesAreUniqueAndExplained) {
  std::set<std::string_view> names;
  for (const Flag& flag : FlagTable()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    for (std::string_view alias : flag.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_FALSE(flag.help.empty()) << flag.name;
    EXPECT_EQ(FindFlag(flag.name), &flag);
  }
}

TEST(Parse, StoresEveryKindOfValue) {
  const CommandLine line = Parse(
      SplitWords("--num-layers 4 --bf16 --lr 1.5e-4 --train-samples 1953125000 --split 99,1,0 "
                 "--data-path 0.7 a 0.3 b "
                 "--decoupled-lr=5.0e-4 --clip-grad .5"));
  EXPECT_EQ(line.config.model.num_layers, 4);
  EXPECT_TRUE(line.config.bf16);
  EXPECT_EQ(line.config.lr, 1.5e-4);
  EXPECT_EQ(line.config.train_samples, 1953125000);
  EXPECT_EQ(line.config.split, "99,1,0");
  EXPECT_THAT(line.config.data_path, ElementsAre("0.7", "a", "0.3", "b"));
  EXPECT_EQ(line.config.decoupled_lr, 5e-4);
  EXPECT_EQ(line.config.clip_grad, 0.5);
  EXPECT_TRUE(line.Given("bf16"));
  EXPECT_FALSE(line.Given("seed"));
}

TEST(Parse, DefaultsAreMegatrons) {
  const TrainConfig c = Parse({}).config;
  EXPECT_EQ(c.adam_beta2, 0.999);
  EXPECT_EQ(c.weight_decay, 0.01);
  EXPECT_EQ(c.model.fp8.amax_history_len, 1);
  EXPECT_EQ(c.fp8_amax_compute_algo, "most_recent");
  EXPECT_EQ(c.fp8_recipe, "delayed");
  EXPECT_EQ(c.eval_iters, 100);
  EXPECT_EQ(c.split, "969, 30, 1");
  EXPECT_EQ(c.model.rotary_base, 10000);
  EXPECT_EQ(c.lr_decay_style, "linear");
}

TEST(Parse, LastOneCounts) {
  EXPECT_EQ(Parse(SplitWords("--seed 1 --seed 2")).config.seed, 2);
}

TEST(Parse, AliasesReachTheSameField) {
  EXPECT_TRUE(Parse(SplitWords("--layernorm-zero-centered-gamma")).config.model.apply_layernorm_1p);
}

TEST(Parse, UnknownFlagNamesTheNearest) {
  EXPECT_THAT(ErrorOf("--micro-batchsize 1"), HasSubstr("did you mean '--micro-batch-size'?"));
  EXPECT_THAT(ErrorOf("--zzzzzz"), HasSubstr("unknown flag --zzzzzz"));
  EXPECT_THAT(ErrorOf("--tensor-model-paralel-size 2"),
              HasSubstr("'--tensor-model-parallel-size'"));
}

TEST(Parse, BadValuesNameFlagAndReason) {
  EXPECT_THAT(ErrorOf("--num-layers four"), HasSubstr("--num-layers 'four': wants a whole number"));
  EXPECT_THAT(ErrorOf("--num-layers 1e3"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf("--num-layers 0"), HasSubstr("must be at least 1"));
  EXPECT_THAT(ErrorOf("--num-layers 99999999999999999999"), HasSubstr("whole number"));
  EXPECT_THAT(ErrorOf("--lr nan"), HasSubstr("finite"));
  EXPECT_THAT(ErrorOf("--lr -1"), HasSubstr("at least 0"));
  EXPECT_THAT(ErrorOf("--lr 1x"), HasSubstr("wants a number"));
  EXPECT_THAT(ErrorOf("--lr"), HasSubstr("--lr : wants a value"));
  EXPECT_THAT(ErrorOf("--lr --bf16"), HasSubstr("wants a value"));
  EXPECT_THAT(ErrorOf("--data-path --bf16"), HasSubstr("wants a value"));
  EXPECT_THAT(ErrorOf("--bf16=1"), HasSubstr("takes no value"));
  EXPECT_THAT(ErrorOf("--bf16 true"), HasSubstr("'true': expected a flag"));
  EXPECT_THAT(ErrorOf("--fp8-format hybird"), HasSubstr("did you mean 'hybrid'?"));
  EXPECT_THAT(ErrorOf("--lr-decay-style WSD"), HasSubstr("one of constant, linear, cosine"));
}

TEST(Parse, FlagsWithoutEffectAreKeptWithTheirWords) {
  const CommandLine line =
      Parse(SplitWords("--use-mcore-models --profile-ranks 0 1 --ckpt-format torch_dist --lr 1"));
  EXPECT_EQ(line.without_effect.at("use-mcore-models"), "");
  EXPECT_EQ(line.without_effect.at("profile-ranks"), "0 1");
  EXPECT_EQ(line.without_effect.at("ckpt-format"), "torch_dist");
  EXPECT_EQ(line.without_effect.size(), 3u);
}

TEST(Parse, Actions) {
  EXPECT_EQ(Parse(SplitWords("--lr 1 --help --nonsense")).action, Action::kHelp);
  EXPECT_EQ(Parse(SplitWords("--version")).action, Action::kVersion);
  EXPECT_EQ(Parse(SplitWords("--print-config --lr 1")).action, Action::kPrintConfig);
}

// The flags of examples/llama/train_llama3_8b_h100_fp8.sh and of its FSDP sibling, mock and real
// data.
TEST(Parse, BothRecipesParse) {
  const std::string model =
      "--use-mcore-models --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 "
      "--num-attention-heads 32 "
      "--group-query-attention --num-query-groups 8 --kv-channels 128 --seq-length 8192 "
      "--max-position-embeddings 8192 --position-embedding-type rope --rotary-base 1000000 "
      "--rotary-percent 1.0 "
      "--attention-dropout 0.0 --hidden-dropout 0.0 --swiglu --normalization RMSNorm "
      "--init-method-std 0.0134 "
      "--attention-backend fused --apply-layernorm-1p --untie-embeddings-and-output-weights "
      "--disable-bias-linear ";
  const std::string training =
      "--micro-batch-size 1 --global-batch-size 128 --train-samples 1953125000 --lr-decay-samples "
      "1949218748 "
      "--lr-warmup-samples 3906252 --lr 0.00015 --min-lr 0.00001 --decoupled-lr 5.0e-4 "
      "--decoupled-min-lr 4.5e-5 "
      "--lr-decay-style cosine --clip-grad 1.0 --weight-decay 0.1 --adam-beta1 0.9 --adam-beta2 "
      "0.95 --bf16 "
      "--cross-entropy-loss-fusion --manual-gc --empty-unused-memory-level 1 "
      "--exit-duration-in-mins 235 ";
  const std::string fp8 =
      "--fp8-format hybrid --fp8-amax-history-len 1024 --fp8-amax-compute-algo max "
      "--fp8-param-gather ";
  const std::string parallel =
      "--tensor-model-parallel-size 1 --context-parallel-size 1 --sequence-parallel "
      "--use-distributed-optimizer "
      "--overlap-grad-reduce --overlap-param-gather ";
  const std::string mock = "--mock-data --tokenizer-type NullTokenizer --tiktoken-pattern v2 ";
  const std::string real =
      "--data-path /data/x_text_document --tokenizer-type HuggingFaceTokenizer --tokenizer-model "
      "/data/tok ";
  const std::string data =
      "--vocab-size 128256 --data-cache-path cache --split '99,1,0' "
      "--no-create-attention-mask-in-dataloader "
      "--no-mmap-bin-files --num-workers 1 ";
  const std::string logging =
      "--log-interval 1 --eval-iters 32 --eval-interval 100 --save-interval 1000 --log-throughput "
      "--profile "
      "--profile-step-start 4 --profile-step-end 6 --ckpt-format torch_dist "
      "--distributed-timeout-minutes 60 "
      "--save checkpoints --load checkpoints --tensorboard-dir tb ";
  const std::string script = "--grad-reduce-in-bf16 --calculate-per-token-loss ";
  const std::string sibling =
      "--no-check-for-nan-in-loss-and-grad --use-megatron-fsdp --data-parallel-sharding-strategy "
      "optim_grads_params --no-gradient-accumulation-fusion --calculate-per-token-loss "
      "--init-model-with-meta-device --ckpt-format fsdp_dtensor --use-nccl-ub --fsdp-double-buffer "
      "--use-precision-aware-optimizer --fsdp-manual-registration --logging-level 20 "
      "--profile-ranks 0 --record-memory-history ";
  for (const std::string& variant : {script, sibling}) {
    for (const std::string& source : {mock, real}) {
      const CommandLine line =
          Parse(SplitWords(model + training + fp8 + parallel + source + data + logging + variant));
      EXPECT_EQ(line.config.split, "'99,1,0'");
      EXPECT_EQ(line.config.model.fp8.amax_history_len, 1024);
    }
  }
}

}  // namespace
}  // namespace muster::config
