// The rules for wishes, row by row.
#include "worker/ranks/reconcile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/worker_testing.h"

namespace muster::ranks {
namespace {

using ::testing::HasSubstr;
using testing::Id;
using testing::Prepare;
using testing::Wish;

constexpr char kOwner[] = "ctl";

worker::AttemptRecord Record(uint64_t generation, v1::Goal goal,
                             v1::RankState state = v1::RANK_STATE_RUNNING) {
  worker::AttemptRecord record;
  *record.mutable_id() = Id("1");
  record.set_generation(generation);
  record.set_goal(goal);
  v1::RankStatus* rank = record.add_ranks();
  rank->set_rank(0);
  rank->set_state(state);
  return record;
}

TEST(Refusal, TableOfGoalsAndGenerations) {
  struct Row {
    uint64_t have_generation;
    v1::Goal have;
    uint64_t wish_generation;
    v1::Goal wish;
    const char* refusal;  // "" = accepted
  };
  const Row rows[] = {
      {1, v1::GOAL_PREPARED, 1, v1::GOAL_PREPARED, ""},
      {1, v1::GOAL_PREPARED, 2, v1::GOAL_PREPARED, ""},
      {1, v1::GOAL_PREPARED, 2, v1::GOAL_RUNNING, ""},
      {1, v1::GOAL_PREPARED, 2, v1::GOAL_STOPPED, ""},
      {2, v1::GOAL_RUNNING, 2, v1::GOAL_RUNNING, ""},
      {2, v1::GOAL_RUNNING, 3, v1::GOAL_STOPPED, ""},
      {3, v1::GOAL_STOPPED, 4, v1::GOAL_STOPPED, ""},
      {3, v1::GOAL_STOPPED, 3, v1::GOAL_STOPPED, ""},
      {2, v1::GOAL_RUNNING, 1, v1::GOAL_PREPARED, "generation 1 is older than the accepted 2"},
      {2, v1::GOAL_RUNNING, 1, v1::GOAL_STOPPED, "generation 1 is older than the accepted 2"},
      {2, v1::GOAL_RUNNING, 2, v1::GOAL_STOPPED,
       "generation 2 was already accepted with goal RUNNING"},
      {3, v1::GOAL_STOPPED, 4, v1::GOAL_RUNNING, "goals only go forward: RUNNING after STOPPED"},
      {5, v1::GOAL_FORGOTTEN, 6, v1::GOAL_PREPARED,
       "goals only go forward: PREPARED after FORGOTTEN"},
      {5, v1::GOAL_FORGOTTEN, 6, v1::GOAL_STOPPED,
       "goals only go forward: STOPPED after FORGOTTEN"},
      {2, v1::GOAL_RUNNING, 3, v1::GOAL_FORGOTTEN, "rank 0 still lives: stop the attempt first"},
      {2, v1::GOAL_RUNNING, 3, v1::GOAL_UNSPECIFIED, "unknown goal 0"},
  };
  for (const Row& row : rows) {
    const auto record = Record(row.have_generation, row.have);
    EXPECT_EQ(Refusal(Wish(Id("1"), row.wish_generation, row.wish), &record, kOwner), row.refusal)
        << row.have_generation << " " << row.have << " <- " << row.wish_generation << " "
        << row.wish;
  }
  const auto ended = Record(2, v1::GOAL_RUNNING, v1::RANK_STATE_EXITED);
  EXPECT_EQ(Refusal(Wish(Id("1"), 3, v1::GOAL_FORGOTTEN), &ended, kOwner), "");
}

TEST(Refusal, UnknownAttempts) {
  EXPECT_EQ(Refusal(Prepare(Id("1"), {"x"}, 2), nullptr, kOwner), "");
  EXPECT_EQ(Refusal(Wish(Id("1"), 1, v1::GOAL_STOPPED), nullptr, kOwner), "");
  EXPECT_EQ(Refusal(Wish(Id("1"), 1, v1::GOAL_FORGOTTEN), nullptr, kOwner), "");
  EXPECT_THAT(Refusal(Wish(Id("1"), 1, v1::GOAL_RUNNING), nullptr, kOwner),
              HasSubstr("attempt ctl/1/0 is unknown here: RUNNING needs its ranks"));
  EXPECT_THAT(Refusal(Wish(Id("1"), 1, v1::GOAL_PREPARED), nullptr, kOwner),
              HasSubstr("is unknown here"));
}

TEST(Refusal, OwnersAndNames) {
  EXPECT_THAT(Refusal(Prepare(Id("1", 0, "else"), {"x"}), nullptr, kOwner),
              HasSubstr("belongs to another controller"));
  for (const char* bad : {"", ".", "..", "a/b", "a b", "\xff"}) {
    EXPECT_THAT(Refusal(Prepare(Id(bad), {"x"}), nullptr, kOwner), HasSubstr("an id has")) << bad;
  }
  EXPECT_THAT(Refusal(Prepare(Id(std::string(65, 'a')), {"x"}), nullptr, kOwner),
              HasSubstr("an id has"));
  EXPECT_TRUE(IsSafeName("127.0.0.2"));
}

TEST(Refusal, BadRanks) {
  v1::Desired wish = Prepare(Id("1"), {"x"}, 2);
  wish.mutable_ranks(1)->set_rank(0);
  EXPECT_EQ(Refusal(wish, nullptr, kOwner), "a rank is given twice");
  wish = Prepare(Id("1"), {});
  EXPECT_EQ(Refusal(wish, nullptr, kOwner), "rank 0: no command");
  wish = Prepare(Id("1"), {"x", std::string("a\0b", 3)});
  EXPECT_EQ(Refusal(wish, nullptr, kOwner), "rank 0: a NUL byte inside an argument");
  wish = Prepare(Id("1"), {"x"});
  wish.mutable_ranks(0)->set_working_dir("here");
  EXPECT_EQ(Refusal(wish, nullptr, kOwner),
            "rank 0: working folder 'here' is not an absolute path");
  wish = Prepare(Id("1"), {"x"});
  wish.mutable_ranks(0)->add_env()->set_name("A=B");
  EXPECT_EQ(Refusal(wish, nullptr, kOwner), "rank 0: environment variable 'A=B' is not NAME=VALUE");
}

TEST(Refusal, RanksCannotChange) {
  const auto record = Record(1, v1::GOAL_PREPARED);
  EXPECT_EQ(Refusal(Prepare(Id("1"), {"x"}, 1), &record, kOwner), "");
  EXPECT_EQ(Refusal(Prepare(Id("1"), {"x"}, 2), &record, kOwner),
            "the ranks of an attempt cannot change");
}

}  // namespace
}  // namespace muster::ranks
