#include "controller/why/groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::why {
namespace {

using testing::ElementsAre;

v1::RankView Rank(uint32_t number, v1::RankState state, int32_t code = 0, int32_t signal = 0) {
  v1::RankView view;
  view.set_host("h");
  view.mutable_status()->set_rank(number);
  view.mutable_status()->set_state(state);
  if (state == v1::RANK_STATE_EXITED || state == v1::RANK_STATE_KILLED) {
    view.mutable_status()->mutable_exit()->set_code(signal != 0 ? 128 + signal : code);
    view.mutable_status()->mutable_exit()->set_signal(signal);
  }
  return view;
}

TEST(Doing, SaysWhoEndedIt) {
  EXPECT_EQ(Doing(Rank(0, v1::RANK_STATE_RUNNING).status()), "running");
  EXPECT_EQ(Doing(Rank(0, v1::RANK_STATE_KILLED, 0, 15).status()),
            "running, ended by us (SIGTERM)");
  EXPECT_EQ(Doing(Rank(0, v1::RANK_STATE_KILLED, 5).status()),
            "running, asked by us to end: exited with code 5");
  EXPECT_EQ(Doing(Rank(0, v1::RANK_STATE_EXITED, 0).status()), "exited with code 0");
  v1::RankView hard = Rank(0, v1::RANK_STATE_KILLED, 0, 9);
  hard.mutable_status()->mutable_exit()->set_escalated(true);
  EXPECT_EQ(Doing(hard.status()), "running; did not end at SIGTERM, killed by us (SIGKILL)");
}

TEST(GroupRanks, EqualButForNumbersIsEqual) {
  std::vector<v1::RankView> ranks;
  for (uint32_t i = 0; i < 5; ++i) ranks.push_back(Rank(i, v1::RANK_STATE_KILLED, 0, 15));
  ranks.push_back(Rank(5, v1::RANK_STATE_EXITED));
  Words words;
  for (uint32_t i = 0; i < 4; ++i) {
    words[i].last =
        LogLine{false, "step " + std::to_string(40 + i) + " loss 1." + std::to_string(i)};
    words[i].iteration = 40 + i;
  }
  words[4].last = LogLine{false, "waiting"};
  std::vector<const v1::RankView*> views;
  for (const auto& rank : ranks) views.push_back(&rank);
  const auto groups = GroupRanks(views, words, 0, 6);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_THAT(groups[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(groups[0].last_line, "step 40 loss 1.0");
  EXPECT_EQ(*groups[0].iterations, std::make_pair(int64_t{40}, int64_t{43}));
  const auto folded = GroupRanks(views, words, 0, 2);
  ASSERT_EQ(folded.size(), 2u);
  EXPECT_THAT(folded[1].ranks, ElementsAre(4, 5));
  EXPECT_EQ(folded[1].doing, "in 2 smaller groups");
}

}  // namespace
}  // namespace muster::why
