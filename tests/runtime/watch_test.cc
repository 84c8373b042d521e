#include <absl/time/clock.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tests/runtime/controller_fixture.h"

namespace muster::testing {
namespace {

using ::testing::SizeIs;

TEST_F(ControllerTest, AWatcherBeginsWhereItWishes) {
  const std::string job = Submit(Spec({"n1"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  Follower all(*controller_, job);
  const size_t so_far = all.events().size();
  ASSERT_GT(so_far, 3u);
  Follower tail(*controller_, job, so_far - 1);
  EXPECT_THAT(tail.events(), SizeIs(1));
  Follower future(*controller_, job, 1000);
  cluster_.ExitRank("n1", 0, 0);
  all.WaitForEnd();
  tail.WaitForEnd();
  EXPECT_EQ(all.events().size(), tail.events().size() + so_far - 1);
  EXPECT_EQ(tail.events().front().sequence(), so_far);
}

TEST_F(ControllerTest, SixtyFourWatchersSeeTheSame) {
  const std::string job = Submit(Spec({"n1", "n2"}, 8));
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < 64; ++i) followers.push_back(std::make_unique<Follower>(*controller_, job));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  for (uint32_t rank = 0; rank < 8; ++rank) cluster_.ExitRank("n1", rank, 0);
  for (uint32_t rank = 8; rank < 16; ++rank) cluster_.ExitRank("n2", rank, 0);
  const size_t count = [&] {
    followers[0]->WaitForEnd();
    return followers[0]->events().size();
  }();
  for (auto& follower : followers) {
    EXPECT_EQ(follower->WaitForEnd().state(), v1::JOB_STATE_SUCCEEDED);
    EXPECT_EQ(follower->events().size(), count);
  }
}

TEST_F(ControllerTest, NoCallComesAfterASubscriptionHasEnded) {
  const std::string job = Submit(Spec({"n1"}, 8));
  for (int i = 0; i < 50; ++i) {
    std::atomic<bool> ended = false;
    std::atomic<int> late = 0;
    auto subscription =
        controller_->Watch(job, 0, [&](std::vector<v1::JobEvent>, std::optional<v1::Job>) {
          if (ended) ++late;
        });
    ASSERT_TRUE(subscription.ok());
    controller_->ReportLogFault(logs_.last_opened().id, absl::UnknownError("x"));
    subscription->reset();
    ended = true;
    controller_->ReportLogFault(logs_.last_opened().id, absl::UnknownError("x"));
    controller_->Info();  // the engine has done it
    EXPECT_EQ(late, 0);
  }
}

TEST_F(ControllerTest, ASubscriptionMayEndInsideItsCallback) {
  const std::string job = Submit(Spec({"n1"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  std::unique_ptr<api::Backend::Subscription> subscription;
  std::atomic<int> calls = 0;
  std::atomic<bool> ready = false;
  auto watch =
      controller_->Watch(job, 1000, [&](std::vector<v1::JobEvent>, std::optional<v1::Job>) {
        ++calls;
        while (!ready) absl::SleepFor(absl::Milliseconds(1));
        subscription.reset();
      });
  ASSERT_TRUE(watch.ok());
  subscription = *std::move(watch);
  ready = true;
  cluster_.ExitRank("n1", 0, 0);
  Follower(*controller_, job).WaitForEnd();
  controller_->Info();
  EXPECT_EQ(calls, 1);
}

TEST_F(ControllerTest, WatchOfAnUnknownJobNamesTheNearest) {
  Submit(Spec({"n1"}));
  const auto watch = controller_->Watch("trane", 0, [](auto, auto) {});
  EXPECT_EQ(watch.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace muster::testing
