#include "trainer/device/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace muster::device {
namespace {

bool SharePlace(const MemoryPlan::Buffer& a, const MemoryPlan::Buffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

bool ShareTime(const MemoryPlan::Buffer& a, const MemoryPlan::Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

TEST(MemoryPlanTest, NeverGivesOneBytesToTwoAtATime) {
  std::mt19937 engine(5);
  for (int round = 0; round < 50; ++round) {
    MemoryPlan plan;
    for (int i = 0; i < 40; ++i) {
      const int first = static_cast<int>(engine() % 20), length = static_cast<int>(engine() % 5);
      plan.Add("b", 1 + static_cast<int64_t>(engine() % 5000), first, first + length);
    }
    plan.Add("always", 300);
    plan.LayOut();
    int64_t largest_moment = 0;
    for (int phase = 0; phase < 25; ++phase) {
      int64_t bytes = 0;
      for (const auto& buffer : plan.buffers()) {
        if (buffer.first <= phase && phase <= buffer.last) bytes += buffer.bytes;
      }
      largest_moment = std::max(largest_moment, bytes);
    }
    EXPECT_GE(plan.TotalBytes(), largest_moment);
    EXPECT_LE(plan.TotalBytes(), 2 * largest_moment);
    for (const auto& a : plan.buffers()) {
      EXPECT_EQ(a.offset % MemoryPlan::kAlignment, 0);
      EXPECT_LE(a.offset + a.bytes, plan.TotalBytes());
      for (const auto& b : plan.buffers()) {
        EXPECT_FALSE(&a != &b && ShareTime(a, b) && SharePlace(a, b));
      }
    }
  }
}

TEST(MemoryPlanTest, LetsBuffersFollowEachOtherInOnePlace) {
  MemoryPlan plan;
  plan.Add("kept", 1000);
  plan.Add("early", 4096, 1, 3);
  plan.Add("late", 4096, 4, 6);
  plan.LayOut();
  EXPECT_EQ(plan.TotalBytes(), 1024 + 4096);
}

TEST(PlannerTest, BindsPointers) {
  Planner planner;
  float* a = nullptr;
  uint8_t* b = nullptr;
  planner.Want(&a, "a", 10);
  planner.Want(&b, "b", 7);
  alignas(256) std::byte memory[512];
  ASSERT_EQ(planner.LayOut(), 512);
  planner.Bind(memory);
  EXPECT_EQ(static_cast<void*>(a), memory);
  EXPECT_EQ(static_cast<void*>(b), memory + 256);
}

}  // namespace
}  // namespace muster::device
