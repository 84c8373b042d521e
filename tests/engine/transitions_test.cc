#include "controller/engine/transitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::engine {
namespace {

using testing::HasSubstr;

// One letter per input, '.' = illegal; the letter is the next state. Every state x input is in one
// of these grids, so a changed table is a changed test.
struct GridRow {
  int state;
  const char* next;  // by input
};

template <typename State, typename Input>
void Walk(const std::vector<GridRow>& grid, const std::map<char, State>& letters,
          const std::vector<Input>& inputs, const std::vector<Row<State, Input>>& table) {
  size_t legal = 0;
  for (const auto& row : grid) {
    const auto state = static_cast<State>(row.state);
    ASSERT_EQ(std::string(row.next).size(), inputs.size()) << Name(state);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto next = Next(state, inputs[i]);
      if (row.next[i] == '.') {
        EXPECT_FALSE(next.ok()) << Name(state) << " got " << Name(inputs[i]);
        EXPECT_THAT(std::string(next.status().message()),
                    HasSubstr("\"" + Name(state) + "\" got \"" + Name(inputs[i])));
      } else {
        ASSERT_TRUE(next.ok()) << next.status();
        EXPECT_EQ(*next, letters.at(row.next[i])) << Name(state) << " got " << Name(inputs[i]);
        ++legal;
      }
    }
  }
  EXPECT_EQ(table.size(), legal) << "a row is in the table twice, or not in the grid";
}

TEST(Transitions, WalkTheJobTable) {
  const std::map<char, v1::JobState> letters = {
      {'q', v1::JOB_STATE_QUEUED},    {'n', v1::JOB_STATE_PLANNING},
      {'f', v1::JOB_STATE_PREFLIGHT}, {'p', v1::JOB_STATE_PREPARING},
      {'s', v1::JOB_STATE_STARTING},  {'r', v1::JOB_STATE_RUNNING},
      {'g', v1::JOB_STATE_STOPPING},  {'S', v1::JOB_STATE_SUCCEEDED},
      {'F', v1::JOB_STATE_FAILED},    {'T', v1::JOB_STATE_STOPPED}};
  using enum JobInput;
  const std::vector<JobInput> inputs = {kScheduled, kPlanned,     kRejected,     kChecked,
                                        kPrepared,  kStarted,     kBroken,       kStopRequested,
                                        kEndedOk,   kEndedFailed, kEndedStopped, kRecovered};
  // S = scheduled, P = planned, R = rejected, C = checked, p = prepared, s = started, B = broken, T
  // = stop requested, o = ended ok, f = ended failed, t = ended stopped, r = recovered
  Walk<v1::JobState, JobInput>(
      {
          //                         SPRCpsBToftr
          {v1::JOB_STATE_UNSPECIFIED, "............"},
          {v1::JOB_STATE_QUEUED, "n.F....T...q"},
          {v1::JOB_STATE_PLANNING, ".fF....T...q"},
          {v1::JOB_STATE_PREFLIGHT, "..Fp...T...q"},
          {v1::JOB_STATE_PREPARING, "....s.gg...p"},
          {v1::JOB_STATE_STARTING, ".....rgg...s"},
          {v1::JOB_STATE_RUNNING, "......ggSF.r"},
          {v1::JOB_STATE_STOPPING, ".......gSFTg"},
          {v1::JOB_STATE_RESTARTING, "............"},
          {v1::JOB_STATE_SUCCEEDED, "...........S"},
          {v1::JOB_STATE_FAILED, "...........F"},
          {v1::JOB_STATE_STOPPED, "...........T"},
      },
      letters, inputs, JobTable());
}

TEST(Transitions, WalkTheLinkTable) {
  const std::map<char, v1::LinkState> letters = {{'c', v1::LINK_STATE_CONNECTING},
                                                 {'u', v1::LINK_STATE_UP},
                                                 {'l', v1::LINK_STATE_LOST},
                                                 {'g', v1::LINK_STATE_GONE}};
  using enum LinkInput;
  Walk<v1::LinkState, LinkInput>(
      {
          {v1::LINK_STATE_UNSPECIFIED, "...."},
          {v1::LINK_STATE_CONNECTING, "culg"},
          {v1::LINK_STATE_UP, "culg"},
          {v1::LINK_STATE_LOST, "culg"},
          {v1::LINK_STATE_GONE, "c..."},
      },
      letters, {kDial, kUp, kLost, kRelease}, LinkTable());
}

TEST(Transitions, WalkTheRankTable) {
  const std::map<char, v1::RankState> letters = {{'a', v1::RANK_STATE_ABSENT},
                                                 {'p', v1::RANK_STATE_PREPARED},
                                                 {'r', v1::RANK_STATE_RUNNING},
                                                 {'e', v1::RANK_STATE_EXITED},
                                                 {'k', v1::RANK_STATE_KILLED}};
  Walk<v1::RankState, v1::RankState>(
      {
          {v1::RANK_STATE_UNSPECIFIED, "......"},
          {v1::RANK_STATE_ABSENT, ".aprek"},
          {v1::RANK_STATE_PREPARED, ".aprek"},
          {v1::RANK_STATE_RUNNING, "...rek"},
          {v1::RANK_STATE_EXITED, "....e."},
          {v1::RANK_STATE_KILLED, ".....k"},
      },
      letters,
      {v1::RANK_STATE_UNSPECIFIED, v1::RANK_STATE_ABSENT, v1::RANK_STATE_PREPARED,
       v1::RANK_STATE_RUNNING, v1::RANK_STATE_EXITED, v1::RANK_STATE_KILLED},
      RankTable());
}

TEST(Transitions, OnlyEndsAreTerminal) {
  std::set<std::string> terminal;
  for (const auto& row : JobTable()) {
    if (IsTerminal(row.state)) terminal.insert(Name(row.state));
  }
  EXPECT_EQ(terminal, (std::set<std::string>{"failed", "stopped", "succeeded"}));
}

}  // namespace
}  // namespace muster::engine
