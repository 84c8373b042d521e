#include "trainer/config/print.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/words.h"
#include "trainer/config/flag_table.h"
#include "trainer/config/resolve.h"

namespace muster::config {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Help, NamesEveryFlag) {
  const std::string help = HelpText();
  for (const Flag& flag : FlagTable()) EXPECT_THAT(help, HasSubstr("--" + std::string(flag.name)));
  EXPECT_THAT(help, ContainsRegex("--adam-beta2 V +second moment \\[0.999\\]"));
}

TEST(PrintConfig, ShowsValueAndOrigin) {
  CommandLine line = Parse(SplitWords(std::string(kTiny) + "--swiglu --ckpt-format torch"));
  Resolve(1, line);
  const std::string text = ConfigText(line);
  EXPECT_THAT(text, ContainsRegex("num-layers +2 +command line\n"));
  EXPECT_THAT(text, ContainsRegex("kv-channels +16 +derived\n"));
  EXPECT_THAT(text, ContainsRegex("seed +1234 +default\n"));
  EXPECT_THAT(text, HasSubstr("--swiglu: no effect: always so here\n"));
  EXPECT_THAT(text, HasSubstr("--ckpt-format torch: no effect: "));
}

TEST(PrintConfig, ChangedTextLeavesDefaultsOut) {
  const CommandLine line = Parse(SplitWords(std::string(kTiny) + "--swiglu"));
  const std::string text = ChangedText(line);
  EXPECT_THAT(text, HasSubstr("num-layers"));
  EXPECT_THAT(text, Not(HasSubstr("default")));
  EXPECT_THAT(text, HasSubstr("--swiglu: no effect"));
}

TEST(PrintConfig, SaysWhereMegatronWouldTrainAnotherModel) {
  const std::string none = ChangedText(Parse(SplitWords(kTiny)));
  EXPECT_THAT(none, HasSubstr("another model without --swiglu (GELU), --disable-bias-linear "
                              "(biases), --normalization (LayerNorm), "));
  const std::string some = ChangedText(
      Parse(SplitWords("--swiglu --normalization RMSNorm --attention-dropout 0 --hidden-dropout 0 "
                       "--use-rotary-position-embeddings")));
  EXPECT_THAT(some, HasSubstr("another model without --disable-bias-linear (biases)\n"));
  for (const char* said : {"--disable-bias-linear", "--load-hf folder"}) {
    const std::string words =
        "--swiglu --normalization RMSNorm --attention-dropout 0 --hidden-dropout 0 "
        "--position-embedding-type rope ";
    EXPECT_THAT(ConfigText(Parse(SplitWords(words + said))), Not(HasSubstr("note:"))) << said;
  }
}

}  // namespace
}  // namespace muster::config
