#include "controller/cli/exit_code.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "controller/cli/output.h"

namespace muster::cli {
namespace {

v1::Job Ended(v1::JobState state, v1::Cause cause, int code) {
  v1::Job job;
  job.set_state(state);
  job.mutable_outcome()->set_cause(cause);
  job.mutable_outcome()->set_code(code);
  return job;
}

TEST(ExitCodeFor, AJobGivesItsOutcome) {
  EXPECT_EQ(ExitCodeFor(Ended(v1::JOB_STATE_SUCCEEDED, v1::CAUSE_OK, 0)), 0);
  EXPECT_EQ(ExitCodeFor(Ended(v1::JOB_STATE_FAILED, v1::CAUSE_RANK_FAILED, 137)), 137);
  EXPECT_EQ(ExitCodeFor(Ended(v1::JOB_STATE_FAILED, v1::CAUSE_PREFLIGHT_FAILED, 120)), 120);
  EXPECT_EQ(ExitCodeFor(Ended(v1::JOB_STATE_STOPPED, v1::CAUSE_STOPPED_BY_USER, 130)), 130);
}

TEST(ExitCodeFor, AJobWithoutAnOutcomeIsNeverASuccessByAccident) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_FAILED);
  EXPECT_EQ(ExitCodeFor(job), kExitInternal);
}

TEST(ExitCodeFor, ErrorsOfCalls) {
  EXPECT_EQ(ExitCodeFor(absl::OkStatus()), 0);
  EXPECT_EQ(ExitCodeFor(absl::InvalidArgumentError("x")), kExitUsage);
  EXPECT_EQ(ExitCodeFor(absl::NotFoundError("x")), kExitUsage);
  EXPECT_EQ(ExitCodeFor(absl::UnavailableError("x")), kExitInternal);
  EXPECT_EQ(ExitCodeFor(absl::DeadlineExceededError("x")), kExitInternal);
}

TEST(Names, AreTheWordsOfTheJsonOutput) {
  EXPECT_EQ(StateName(v1::JOB_STATE_RUNNING), "running");
  EXPECT_EQ(CauseName(v1::CAUSE_STOPPED_BY_USER), "stopped_by_user");
  EXPECT_EQ(StreamName(v1::STREAM_STDERR), "stderr");
  EXPECT_EQ(LinkStateName(v1::LINK_STATE_UP), "up");
  EXPECT_EQ(RankStateName(v1::RANK_STATE_EXITED), "exited");
}

TEST(CheckStdout, LostOutputIsNoSuccess) {
  EXPECT_EQ(CheckStdout(kExitOk), kExitOk);
  const int kept = dup(STDOUT_FILENO);
  const int full = open("/dev/full", O_WRONLY);
  dup2(full, STDOUT_FILENO);
  const bool written = WriteAll(STDOUT_FILENO, "x");
  dup2(kept, STDOUT_FILENO);
  close(kept);
  close(full);
  EXPECT_FALSE(written);
  EXPECT_EQ(CheckStdout(kExitOk), kExitInternal);
  EXPECT_EQ(CheckStdout(kExitUsage), kExitUsage);
}

}  // namespace
}  // namespace muster::cli
