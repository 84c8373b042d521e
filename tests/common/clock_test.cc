#include "common/clock.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::seconds;

TEST(FakeClock, AdvanceMovesBothClocks) {
  FakeClock clock;
  const auto steady = clock.Now();
  const int64_t wall = clock.RealtimeNs();
  clock.Advance(seconds(2));
  EXPECT_EQ(clock.Now() - steady, seconds(2));
  EXPECT_EQ(clock.RealtimeNs() - wall, 2'000'000'000);
}

TEST(FakeClock, AWallClockJumpLeavesTheSteadyClock) {
  FakeClock clock;
  const auto steady = clock.Now();
  const int64_t wall = clock.RealtimeNs();
  clock.JumpRealtime(-seconds(3600));
  EXPECT_EQ(clock.Now(), steady);
  EXPECT_EQ(clock.RealtimeNs() - wall, -3'600'000'000'000);
}

TEST(RealClock, SteadyClockNeverFalls) {
  const Clock& clock = Clock::Real();
  const auto before = clock.Now();
  EXPECT_GE(clock.Now(), before);
  EXPECT_GT(clock.RealtimeNs(), 1'700'000'000'000'000'000);
}

}  // namespace
}  // namespace muster
