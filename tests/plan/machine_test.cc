#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/constants.h"
#include "controller/plan/device_memory.h"
#include "plan_testing.h"

// What is known of the machines: device memory and the model's rates.

namespace muster::plan {
namespace {

using testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

TEST(ParseMemorySize, UnitsAreBinary) {
  EXPECT_EQ(*ParseMemorySize("80G"), 80 * kGiB);
  EXPECT_EQ(*ParseMemorySize("139.5GiB"), 139.5 * kGiB);
  EXPECT_EQ(*ParseMemorySize("81559MiB"), 81559 * kGiB / 1024);
  EXPECT_EQ(*ParseMemorySize("80gb"), 80 * kGiB);
  for (const char* text : {"", "80", "G", "80T", "-1G", "1e99G", "0G", "80 G", "nanG"}) {
    EXPECT_THAT(std::string(ParseMemorySize(text).status().message()), HasSubstr("139GiB")) << text;
  }
}

TEST(MemoryOfType, SizeInTheNameElseTheTable) {
  EXPECT_EQ(MemoryOfType("A800-80G"), 80 * kGiB);
  EXPECT_EQ(MemoryOfType("NVIDIA-A100-SXM4-40GB"), 40 * kGiB);
  EXPECT_EQ(MemoryOfType("h200"), 143771.0 * kGiB / 1024);
  EXPECT_EQ(MemoryOfType("NVIDIA-H100"), 81559.0 * kGiB / 1024);
  EXPECT_FALSE(MemoryOfType("S4000").has_value());
  EXPECT_FALSE(MemoryOfType("").has_value());
  EXPECT_FALSE(MemoryOfType("rack3").has_value());
}

TEST(MemoryOfHosts, TheSmallestCounts) {
  const auto plan =
      MakePlan(Job("a slots=1 type=H200\nb slots=1 type=H100\nc slots=1 type=big\n", {"x"}));
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(MemoryOfHosts(*plan)->source, "type=H100 of b");
  EXPECT_FALSE(MemoryOfHosts(*MakePlan(Job("a slots=1\n", {"x"}))).has_value());
}

TEST(Constants, TheBuiltInOnesAreComplete) {
  const Constants& c = DefaultConstants();
  EXPECT_EQ(c.name, "NVIDIA H200");
  for (const double rate :
       {c.fp8_tflops, c.bf16_tflops, c.attention_tflops, c.memory_gb_s, c.optimizer_gb_s,
        c.idle_fraction, c.intra_host_gb_s, c.inter_host_gb_s, c.intra_host_us, c.inter_host_us}) {
    EXPECT_GT(rate, 0);
  }
}

TEST(Constants, AFileReplacesWhatItNames) {
  const auto c = ParseConstants("[links]\ninter_host_gb_s = 12.5\n", "mine.toml");
  ASSERT_TRUE(c.ok()) << c.status();
  EXPECT_EQ(c->inter_host_gb_s, 12.5);
  EXPECT_EQ(c->fp8_tflops, DefaultConstants().fp8_tflops);
}

TEST(Constants, ErrorsHaveAPlace) {
  EXPECT_THAT(std::string(ParseConstants("[device]\nfp8_tflop = 1\n", "m").status().message()),
              HasSubstr("m:2:1: unknown key 'fp8_tflop' in [device]; did you mean 'fp8_tflops'?"));
  EXPECT_THAT(std::string(ParseConstants("[links]\nintra_host_us = 0\n", "m").status().message()),
              HasSubstr("m:2:"));
  EXPECT_FALSE(ParseConstants("[device]\nmemory_gb_s = \"fast\"\n", "m").ok());
}

}  // namespace
}  // namespace muster::plan
