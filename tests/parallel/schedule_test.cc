#include "trainer/parallel/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

namespace muster::parallel {
namespace {

using ::testing::ElementsAre;

constexpr Step F(int64_t micro_batch, int64_t chunk = 0) {
  return {true, chunk, micro_batch};
}
constexpr Step B(int64_t micro_batch, int64_t chunk = 0) {
  return {false, chunk, micro_batch};
}

std::vector<PipelineShape> Shapes() {
  std::vector<PipelineShape> shapes;
  for (const int64_t stages : {1, 2, 3, 4, 8}) {
    for (const int64_t micro_batches : {1, 2, 3, 5, 8, 16}) {
      shapes.push_back({stages, 1, micro_batches});
      for (const int64_t chunks : {2, 3, 4}) {
        if (stages > 1 && micro_batches % stages == 0) {
          shapes.push_back({stages, chunks, micro_batches});
        }
      }
    }
  }
  shapes.push_back({2, 2, 7, 4});  // a last, smaller turn
  shapes.push_back({4, 2, 16, 6});
  shapes.push_back({2, 3, 8, 8});
  return shapes;
}

TEST(Schedule, OneForwardOneBackward) {
  const PipelineShape shape = {.stages = 4, .micro_batches = 4};
  EXPECT_THAT(PipelineSchedule(shape, 3),
              ElementsAre(F(0), B(0), F(1), B(1), F(2), B(2), F(3), B(3)));
  EXPECT_THAT(PipelineSchedule(shape, 1),
              ElementsAre(F(0), F(1), F(2), B(0), F(3), B(1), B(2), B(3)));
  EXPECT_THAT(PipelineSchedule({.micro_batches = 2}, 0), ElementsAre(F(0), B(0), F(1), B(1)));
}

// Megatron's order table for 2 stages, 2 chunks, 4 micro-batches.
TEST(Schedule, Interleaved) {
  const PipelineShape shape = {.stages = 2, .chunks = 2, .micro_batches = 4};
  EXPECT_THAT(ForwardSchedule(shape),
              ElementsAre(F(0), F(1), F(0, 1), F(1, 1), F(2), F(3), F(2, 1), F(3, 1)));
  EXPECT_THAT(PipelineSchedule(shape, 1),
              ElementsAre(F(0), F(1), F(0, 1), B(0, 1), F(1, 1), B(1, 1), F(2), B(0), F(3), B(1),
                          F(2, 1), B(2, 1), F(3, 1), B(3, 1), B(2), B(3)));
}

TEST(Schedule, WarmUpIsMegatrons) {
  for (int64_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(WarmUpSteps({.stages = 4, .micro_batches = 16}, stage), 3 - stage);
    EXPECT_EQ(WarmUpSteps({.stages = 4, .micro_batches = 2}, stage),
              std::min<int64_t>(3 - stage, 2));
    EXPECT_EQ(WarmUpSteps({.stages = 4, .chunks = 3, .micro_batches = 16}, stage),
              2 * (3 - stage) + 2 * 4);
    EXPECT_EQ(WarmUpSteps({.stages = 4, .chunks = 2, .micro_batches = 16, .group = 8}, stage),
              2 * (3 - stage) + 8);
    EXPECT_EQ(WarmUpSteps({.stages = 4, .chunks = 2, .micro_batches = 4}, stage),
              std::min<int64_t>(2 * (3 - stage) + 4, 8));
  }
}

TEST(Schedule, EveryStepComesOnceAndBackwardsAfterForwards) {
  for (const PipelineShape& shape : Shapes()) {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      std::set<std::tuple<bool, int64_t, int64_t>> seen;
      for (const Step& step : PipelineSchedule(shape, stage)) {
        EXPECT_TRUE(seen.emplace(step.forward, step.chunk, step.micro_batch).second);
        if (!step.forward) {
          EXPECT_TRUE(seen.contains({true, step.chunk, step.micro_batch}));
        }
      }
      EXPECT_EQ(seen.size(), static_cast<size_t>(2 * shape.chunks * shape.micro_batches));
    }
  }
}

// Runs all stages as the executor does: a step waits for its input, a message is sent at once, and
// those of one direction between two stages arrive in the order of sending. True when all end.
bool Completes(const PipelineShape& shape) {
  using Message = std::pair<int64_t, int64_t>;  // chunk of the receiver, micro-batch
  std::map<std::tuple<bool, int64_t, int64_t>, std::deque<Message>> channels;
  std::vector<std::vector<Step>> schedules;
  std::vector<size_t> done(static_cast<size_t>(shape.stages));
  for (int64_t s = 0; s < shape.stages; ++s) schedules.push_back(PipelineSchedule(shape, s));
  for (bool progress = true; progress;) {
    progress = false;
    for (int64_t s = 0; s < shape.stages; ++s) {
      const auto index = static_cast<size_t>(s);
      if (done[index] == schedules[index].size()) continue;
      const Step& step = schedules[index][done[index]];
      const int64_t places = shape.stages * shape.chunks, place = step.chunk * shape.stages + s;
      const int64_t from = step.forward ? place - 1 : place + 1;
      const int64_t to = step.forward ? place + 1 : place - 1;
      if (from >= 0 && from < places) {
        auto& channel = channels[{step.forward, from % shape.stages, s}];
        if (channel.empty()) continue;
        if (channel.front() != Message(step.chunk, step.micro_batch)) return false;
        channel.pop_front();
      }
      if (to >= 0 && to < places) {
        channels[{step.forward, s, to % shape.stages}].emplace_back(to / shape.stages,
                                                                    step.micro_batch);
      }
      ++done[index];
      progress = true;
    }
  }
  return std::equal(done.begin(), done.end(), schedules.begin(),
                    [](size_t count, const auto& steps) { return count == steps.size(); });
}

TEST(Schedule, MessagesMatchAndNobodyWaitsForEver) {
  for (const PipelineShape& shape : Shapes()) {
    EXPECT_TRUE(Completes(shape)) << shape.stages << " stages, " << shape.chunks << " chunks, "
                                  << shape.micro_batches << " micro-batches";
  }
}

// 1F1B keeps no more micro-batches than there are stages behind, and its own.
TEST(Schedule, InFlightIsBounded) {
  for (const PipelineShape& shape : Shapes()) {
    for (int64_t stage = 0; stage < shape.stages; ++stage) {
      int64_t now = 0, most = 0;
      for (const Step& step : PipelineSchedule(shape, stage)) {
        now += step.forward ? 1 : -1;
        most = std::max(most, now);
      }
      EXPECT_EQ(now, 0);
      EXPECT_LE(most, WarmUpSteps(shape, stage) + 1);
    }
  }
}

}  // namespace
}  // namespace muster::parallel
