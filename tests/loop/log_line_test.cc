#include "trainer/loop/log_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <time.h>

#include <cmath>
#include <limits>
#include <regex>

namespace muster::loop {
namespace {

IterationLog Sample() {
  IterationLog log;
  log.realtime_us = 1'700'000'000'000'042;
  log.iteration = 7;
  log.train_iters = 100;
  log.consumed_samples = 896;
  log.ms_per_iteration = 1234.56;
  log.learning_rate = 1.234567e-5;
  log.global_batch_size = 128;
  log.lm_loss = 6.433653;
  log.grad_norm = 2.6019;
  return log;
}

class LogLine : public testing::Test {
 protected:
  void SetUp() override {
    setenv("TZ", "UTC", 1);
    tzset();
  }
};

TEST_F(LogLine, IsMegatronsLetterByLetter) {
  EXPECT_EQ(
      IterationLine(Sample()),
      " [2023-11-14 22:13:20.000042] iteration        7/     100 | consumed samples:          896 |"
      " elapsed time per iteration (ms): 1234.6 | learning rate: 1.234567E-05 |"
      " global batch size:   128 | lm loss: 6.433653E+00 | loss scale: 1.0 | grad norm: 2.602 |"
      " number of skipped iterations:   0 | number of nan iterations:   0 |");
}

TEST_F(LogLine, EnergyComesBeforeTheLearningRate) {
  IterationLog log = Sample();
  log.energy = {5123.5, 690.04, 0.0390887};
  EXPECT_THAT(IterationLine(log),
              testing::HasSubstr(" | energy per GPU (J/iter/GPU): 5123.5 |"
                                 " power per GPU (W/GPU): 690.0 | energy per token (J): 0.039089 |"
                                 " learning rate: "));
}

TEST_F(LogLine, ThroughputComesAfterTheTime) {
  IterationLog log = Sample();
  log.tflops_per_gpu = 743.849;
  EXPECT_THAT(IterationLine(log),
              testing::HasSubstr(
                  "(ms): 1234.6 | throughput per GPU (TFLOP/s/GPU): 743.8 | learning rate:"));
}

TEST_F(LogLine, ALossThatIsNanVanishes) {
  IterationLog log = Sample();
  log.lm_loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(IterationLine(log), testing::HasSubstr("size:   128 | loss scale"));
}

// Expressions of the kind that log parsers in the field use.
TEST_F(LogLine, ParsesWithCommonExpressions) {
  IterationLog log = Sample();
  log.tflops_per_gpu = 743.849;
  const std::string line = IterationLine(log);
  const auto field = [&line](const char* expression) {
    std::smatch match;
    return std::regex_search(line, match, std::regex(expression)) ? match[1].str()
                                                                  : std::string("none");
  };
  EXPECT_EQ(field(R"(iteration\s+(\d+)/\s*\d+)"), "7");
  EXPECT_EQ(field(R"(lm loss: ([0-9.E+-]+))"), "6.433653E+00");
  EXPECT_EQ(field(R"(elapsed time per iteration \(ms\): ([0-9.]+))"), "1234.6");
  EXPECT_EQ(field(R"(throughput per GPU \(TFLOP/s/GPU\): ([0-9.]+))"), "743.8");
  EXPECT_EQ(field(R"(grad norm: ([0-9.]+) \|)"), "2.602");
  EXPECT_EQ(field(R"(learning rate: (\d\.\d+E[+-]\d+) \|)"), "1.234567E-05");
  EXPECT_EQ(field(R"(consumed samples:\s+(\d+))"), "896");
  EXPECT_EQ(field(R"(\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d))"), "2023-11-14 22:13:20");
}

TEST_F(LogLine, Validation) {
  const std::string text = ValidationLines("iteration 100", std::log(2.0));
  const std::string line =
      " validation loss at iteration 100 | lm loss value: 6.931472E-01 | lm loss PPL: 2.000000E+00 "
      "| ";
  const std::string dashes(line.size() + 1, '-');
  EXPECT_EQ(text, dashes + "\n" + line + "\n" + dashes);
  EXPECT_THAT(ValidationLines("iteration 1", 30),
              testing::HasSubstr("PPL: 4.851652E+08"));  // exp(20)
}

TEST_F(LogLine, OneRanksOwn) {
  EXPECT_EQ(RankLine(2, Sample(), 6.5, 224),
            " [rank 2] iteration 7/100 | lm loss (local): 6.5000 | lm loss: 6.4337 | samples "
            "(local): 224");
}

}  // namespace
}  // namespace muster::loop
