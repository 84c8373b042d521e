#include "trainer/commtest/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/config/error.h"

namespace muster::commtest {
namespace {

using testing::ElementsAre;

std::string Error(const std::vector<std::string>& words) {
  try {
    ParseOptions(words);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CommtestOptions, LongFormsAndLetters) {
  const Options options = ParseOptions({"--ops=all_reduce,sendrecv",
                                        "-b",
                                        "1K",
                                        "-e",
                                        "2M",
                                        "-f",
                                        "2",
                                        "--iters",
                                        "3",
                                        "-w",
                                        "0",
                                        "--datatype",
                                        "int64",
                                        "--pairs",
                                        "none",
                                        "--backend",
                                        "gloo",
                                        "-T",
                                        "9",
                                        "--json"});
  EXPECT_THAT(options.collectives, ElementsAre(Collective::kAllReduce, Collective::kSendReceive));
  EXPECT_EQ(options.min_bytes, 1024);
  EXPECT_EQ(options.max_bytes, 2 << 20);
  EXPECT_EQ(options.step_factor, 2);
  EXPECT_EQ(options.iterations, 3);
  EXPECT_EQ(options.warmup, 0);
  EXPECT_EQ(options.type, Type::kInt64);
  EXPECT_FALSE(options.pairs);
  EXPECT_EQ(options.backend, Backend::kGloo);
  EXPECT_EQ(options.timeout, std::chrono::seconds(9));
  EXPECT_TRUE(options.json);
  EXPECT_TRUE(ParseOptions({"--ops", "none"}).collectives.empty());
  EXPECT_EQ(ParseOptions({}).collectives.size(), AllCollectives().size());
}

TEST(CommtestOptions, SizesOfASweep) {
  EXPECT_THAT(Sizes(ParseOptions({"-b", "8", "-e", "1K", "-f", "4"})),
              ElementsAre(8, 32, 128, 512));
  EXPECT_THAT(Sizes(ParseOptions({"-b", "8", "-e", "32", "-f", "4"})), ElementsAre(8, 32));
  EXPECT_THAT(Sizes(ParseOptions({"-b", "7", "-e", "7"})), ElementsAre(7));
  EXPECT_EQ(Sizes(ParseOptions({"-b", "1", "-e", "1024G", "-f", "1048576"})).size(), 3u);
}

TEST(CommtestOptions, Sizes) {
  EXPECT_EQ(ParseSize("-b", "3"), 3);
  EXPECT_EQ(ParseSize("-b", "64K"), 65536);
  EXPECT_EQ(ParseSize("-b", "1G"), 1 << 30);
  for (const char* text : {"", "0", "-1", "K", "1.5M", "4k", "8MB", "9999999G", "1e3"}) {
    EXPECT_THROW(ParseSize("-b", text), ConfigError) << text;
  }
}

TEST(CommtestOptions, WhatIsWrongIsNamed) {
  EXPECT_EQ(Error({"--itres", "3"}), "unknown option --itres; did you mean '--iters'?");
  EXPECT_EQ(Error({"--iters"}), "--iters: needs a value");
  EXPECT_EQ(Error({"--iters", "x"}), "--iters x: expected a whole number from 1 to 1000000");
  EXPECT_EQ(Error({"--json=1"}), "--json: takes no value");
  EXPECT_EQ(Error({"--ops", "allreduce"}),
            "--ops allreduce: not one of all_reduce, all_gather, reduce_scatter, broadcast, "
            "sendrecv; did you mean 'all_reduce'?");
  EXPECT_EQ(Error({"-b", "2K", "-e", "1K"}), "--min-bytes 2048 is more than --max-bytes 1024");
}

}  // namespace
}  // namespace muster::commtest
