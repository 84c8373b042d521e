// Whose process is a leftover of a dead attempt.
#include "worker/ranks/orphans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/worker/fake_proc.h"

namespace muster::ranks {
namespace {

TEST(ParseMark, TakesOnlyWholeMarks) {
  const auto mark = ParseMark("ab12/7/0@0f3c");
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->controller, "ab12");
  EXPECT_EQ(mark->job, "7");
  EXPECT_EQ(mark->attempt, "0");
  EXPECT_EQ(mark->tag, "0f3c");
  EXPECT_EQ(mark->Name(), "ab12/7/0");
  for (const char* bad :
       {"", "a/b@c", "a/b/c@d", "a/b/0", "/b/0@d", "a/b/0@", "a/../0@d", "a/b/0/1@d"}) {
    EXPECT_FALSE(ParseMark(bad)) << bad;
  }
}

TEST(FindMarked, ReadsMarkRankAndFolder) {
  FakeProc proc;
  proc.Add(10, 1, 'S',
           Environment({"MUSTER_ATTEMPT=ctl/1/0@tag", "RANK=3",
                        "TORCHELASTIC_ERROR_FILE=/var/x/jobs/ctl/1/attempt_0/3/error.json"}));
  proc.Add(11, 1, 'Z', Environment({"MUSTER_ATTEMPT=ctl/1/0@tag"}));
  proc.Add(12, 1, 'S', Environment({"XMUSTER_ATTEMPT=ctl/1/0@tag"}));
  proc.Add(13, 1, 'S', std::nullopt);
  proc.Add(14, 1, 'D',
           Environment({"A=1", "MUSTER_ATTEMPT=ctl/1/0@tag",
                        "TORCHELASTIC_ERROR_FILE=/tmp/else/error.json"}));
  const auto found = FindMarked(proc);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].process.pid, 10);
  EXPECT_EQ(found[0].process.rank, 3u);
  EXPECT_EQ(found[0].attempt_folder, "/var/x/jobs/ctl/1/attempt_0");
  EXPECT_EQ(found[1].process.state, 'D');
  EXPECT_EQ(found[1].process.wait_channel, "do_wait");
  EXPECT_EQ(found[1].attempt_folder, "");
}

MarkedProcess Of(const std::string& value, const std::string& folder = "/f") {
  MarkedProcess process;
  process.mark = *ParseMark(value);
  process.attempt_folder = folder;
  return process;
}

TEST(IsDead, WhatNobodyRunsIsDead) {
  AttemptKnowledge known{"tag", "ctl", {"5"}, {"ctl/4/0", "ctl/5/0", "other/1/0"}, false};
  EXPECT_TRUE(IsDead(Of("ctl/3/0@tag"), known, true)) << "this daemon does not run it";
  EXPECT_TRUE(IsDead(Of("other/9/0@tag"), known, true))
      << "nobody's, and its folder is this daemon's";
  EXPECT_TRUE(IsDead(Of("ctl/4/0@tag"), known, true)) << "its controller has ended it";
  EXPECT_FALSE(IsDead(Of("ctl/5/0@tag"), known, true)) << "a job that runs";
  EXPECT_FALSE(IsDead(Of("ctl/5/1@else"), known, false)) << "a job that runs, wherever";
}

TEST(IsDead, OtherControllersRunOn) {
  AttemptKnowledge known{"tag", "ctl", {}, {"other/1/0"}, false};
  EXPECT_FALSE(IsDead(Of("other/1/0@tag"), known, true));
  known.any_controller = true;
  EXPECT_TRUE(IsDead(Of("other/1/0@tag"), known, true));
}

TEST(IsDead, OtherDaemonsRunOnUnlessTheirFolderIsGone) {
  AttemptKnowledge known{"tag", "ctl", {}, {}, true};
  EXPECT_FALSE(IsDead(Of("other/1/0@else"), known, true));
  EXPECT_TRUE(IsDead(Of("other/1/0@else"), known, false));
  EXPECT_FALSE(IsDead(Of("other/1/0@else", ""), known, false)) << "nobody knows where it was";
}

}  // namespace
}  // namespace muster::ranks
