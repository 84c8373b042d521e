#include "trainer/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace muster::optim {
namespace {

LrSchedule Schedule(LrDecayStyle style) {
  return {style, 1.0, 0.1, 0.0, 100, 1100};
}

TEST(LrScheduleTest, WarmsUpFromZeroToTheMaximum) {
  for (const LrDecayStyle style : {LrDecayStyle::kConstant, LrDecayStyle::kLinear,
                                   LrDecayStyle::kCosine, LrDecayStyle::kInverseSquareRoot}) {
    EXPECT_EQ(Schedule(style).At(0), 0);
    EXPECT_DOUBLE_EQ(Schedule(style).At(25), 0.25);
    EXPECT_DOUBLE_EQ(Schedule(style).At(100), 1);
  }
  LrSchedule from_half = Schedule(LrDecayStyle::kCosine);
  from_half.warmup_init = 0.5;
  EXPECT_DOUBLE_EQ(from_half.At(0), 0.5);
  EXPECT_DOUBLE_EQ(from_half.At(50), 0.75);
}

TEST(LrScheduleTest, DecaysAsItsStyleSays) {
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kConstant).At(5000), 1);
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kLinear).At(600), 0.55);
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kCosine).At(600), 0.55);
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kCosine).At(350),
                   0.1 + 0.5 * (1 + std::cos(std::acos(-1.0) / 4)) * 0.9);
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kInverseSquareRoot).At(400), 0.5);
}

TEST(LrScheduleTest, EndsAtTheMinimum) {
  for (const LrDecayStyle style : {LrDecayStyle::kLinear, LrDecayStyle::kCosine}) {
    EXPECT_DOUBLE_EQ(Schedule(style).At(1100), 0.1);
    EXPECT_DOUBLE_EQ(Schedule(style).At(1101), 0.1);
  }
  EXPECT_DOUBLE_EQ(Schedule(LrDecayStyle::kInverseSquareRoot).At(1101), 0.1);
}

TEST(LrScheduleTest, WithoutWarmUpTheFirstIterationRunsAtTheMaximum) {
  LrSchedule schedule = Schedule(LrDecayStyle::kCosine);
  schedule.warmup_samples = 0;
  EXPECT_DOUBLE_EQ(schedule.At(0), 1);
}

TEST(LrScheduleTest, WarmUpMayEndWithinASample) {
  LrSchedule schedule = Schedule(LrDecayStyle::kLinear);
  schedule.warmup_samples = 2.5;
  schedule.decay_samples = 10;
  EXPECT_DOUBLE_EQ(schedule.At(2), 0.8);
  EXPECT_DOUBLE_EQ(schedule.At(4), 0.1 + 0.9 * (1 - 1.5 / 7.5));
}

TEST(LrScheduleTest, DecayMustOutlastWarmUp) {
  LrSchedule schedule = Schedule(LrDecayStyle::kCosine);
  schedule.decay_samples = 100;
  EXPECT_DOUBLE_EQ(schedule.At(100), 1);
  EXPECT_DOUBLE_EQ(schedule.At(101), 0.1);
  schedule.warmup_samples = 0;
  schedule.decay_samples = 0;
  EXPECT_THROW(schedule.At(0), std::invalid_argument);
}

}  // namespace
}  // namespace muster::optim
