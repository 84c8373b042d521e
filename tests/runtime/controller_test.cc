#include "controller/runtime/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/runtime/controller_fixture.h"

namespace muster::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(ControllerTest, AJobSucceeds) {
  const std::string job = Submit(Spec({"n1", "n2"}, 2));
  EXPECT_EQ(job, "1");
  const v1::Job running = WaitForState(job, v1::JOB_STATE_RUNNING);
  ASSERT_THAT(running.ranks(), SizeIs(4));
  EXPECT_EQ(running.ranks(3).host(), "n2");
  EXPECT_EQ(running.ranks(3).status().state(), v1::RANK_STATE_RUNNING);
  EXPECT_EQ(running.master_port(), 29500u);
  EXPECT_EQ(logs_.last_opened().output_dir, running.output_dir());

  Follower follower(*controller_, job);
  for (const uint32_t rank : {0u, 1u}) cluster_.ExitRank("n1", rank, 0);
  for (const uint32_t rank : {2u, 3u}) cluster_.ExitRank("n2", rank, 0);
  const v1::Job ended = follower.WaitForEnd();
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(ended.outcome().code(), 0);
  ASSERT_THAT(ended.ends(), SizeIs(2));
  EXPECT_TRUE(ended.ends(0).clean());
  EXPECT_EQ(controller_->GetJob(job)->SerializeAsString(), ended.SerializeAsString())
      << "the view from the store is the view of the engine";
  // Sequences have no gaps.
  const auto events = follower.events();
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence(), i + 1);
}

TEST_F(ControllerTest, ARankFails) {
  const std::string job = Submit(Spec({"n1", "n2"}, 2));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  cluster_.ExitRank("n2", 2, 0, 9);
  const v1::Job ended = Follower(*controller_, job).WaitForEnd();
  EXPECT_EQ(ended.state(), v1::JOB_STATE_FAILED);
  EXPECT_EQ(ended.outcome().code(), 137);
  EXPECT_EQ(ended.outcome().message(),
            "rank 2 on n2 was killed by SIGKILL (9); Muster did not send it");
  EXPECT_EQ(cluster_.Running("n1") + cluster_.Running("n2"), 0u);
}

TEST_F(ControllerTest, PrepareFails) {
  cluster_.WithNode("n2", [](FakeNode& node) {
    node.faults.prepare_error = "mkdir /x: No space left on device";
  });
  const v1::Job ended = Follower(*controller_, Submit(Spec({"n1", "n2"}))).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 121);
  EXPECT_THAT(ended.outcome().message(), HasSubstr("n2 could not prepare its ranks"));
}

TEST_F(ControllerTest, ANodeIsUnreachable) {
  cluster_.Cut("n2");
  const v1::Job ended = Follower(*controller_, Submit(Spec({"n1", "n2"}))).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 120);
  EXPECT_THAT(ended.outcome().message(),
              HasSubstr("connect: n2: did not say hello within 0.3 s (connection refused); fix: "));
}

TEST_F(ControllerTest, ATransportThatIsNotToBeHadIsInvalid) {
  const v1::Job ended = Follower(*controller_, Submit(Spec({"n1", "n9"}))).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 2);
  EXPECT_EQ(ended.outcome().message(), "n9: transport 'fake' does not reach n9");
}

TEST_F(ControllerTest, LogFilesThatCannotBeMadeEndTheJob) {
  logs_.FailOpen(absl::ResourceExhaustedError("mkdir ranks: No space left on device"));
  const v1::Job ended = Follower(*controller_, Submit(Spec({"n1"}))).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 125);
  EXPECT_THAT(ended.outcome().message(),
              HasSubstr("open the log files: mkdir ranks: No space left"));
  EXPECT_EQ(cluster_.Running("n1"), 0u);
}

TEST_F(ControllerTest, TheUserStopsAJob) {
  const std::string job = Submit(Spec({"n1", "n2"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  Stop(job, 0.05);
  const v1::Job ended = Follower(*controller_, job).WaitForEnd();
  EXPECT_EQ(ended.state(), v1::JOB_STATE_STOPPED);
  EXPECT_EQ(ended.outcome().code(), 130);
  Stop(job, 0);  // an ended job: nothing to do, no error
}

TEST_F(ControllerTest, StopAllStopsQueuedJobsToo) {
  const std::string first = Submit(Spec({"n1"}));
  WaitForState(first, v1::JOB_STATE_RUNNING);
  const std::string second = Submit(Spec({"n1"}));
  v1::StopRequest request;
  request.set_all(true);
  EXPECT_THAT(controller_->Stop(request)->job_ids(), SizeIs(2));
  EXPECT_EQ(Follower(*controller_, first).WaitForEnd().outcome().code(), 130);
  EXPECT_EQ(Follower(*controller_, second).WaitForEnd().outcome().code(), 130);
}

TEST_F(ControllerTest, StopOfAnUnreachableNodeIsUnverified) {
  const std::string job = Submit(Spec({"n1", "n2"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  cluster_.Cut("n2");
  Stop(job, 0.05);
  const v1::Job ended = Follower(*controller_, job).WaitForEnd();
  EXPECT_EQ(ended.outcome().cause(), v1::CAUSE_LEFTOVERS);
  EXPECT_EQ(ended.outcome().code(), 124);
  EXPECT_THAT(ended.outcome().message(), HasSubstr("n2: unverified"));
  ASSERT_THAT(ended.ends(), SizeIs(2));
  EXPECT_TRUE(ended.ends(0).clean());
  EXPECT_FALSE(ended.ends(1).clean());
  EXPECT_EQ(cluster_.Running("n2"), 1u);
  // It is stopped as soon as it can be reached again.
  cluster_.Heal("n2");
  for (int i = 0; i < 1000 && cluster_.Running("n2") > 0; ++i)
    absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(cluster_.Running("n2"), 0u);
}

TEST_F(ControllerTest, TheOutputFolderTellsTheStory) {
  v1::JobSpec spec = Spec({"n1"});
  spec.set_name("story");
  const std::string job = Submit(spec);
  const std::string dir = WaitForState(job, v1::JOB_STATE_RUNNING).output_dir();
  EXPECT_THAT(
      dir, ContainsRegex("/output/[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]{2}-[0-9]{2}-[0-9]{2}_story$"));
  cluster_.ExitRank("n1", 0, 3);
  Follower(*controller_, job).WaitForEnd();
  StopController();  // the writer has finished
  EXPECT_THAT(ReadFile(dir + "/why.txt"),
              AllOf(HasSubstr("(story) failed after"), HasSubstr(", exit code 3\n"),
                    ContainsRegex("  cause +rank 0 on n1 \\(pid [0-9]+\\) exited with code 3\n"),
                    ContainsRegex("  nodes +n1  clean  1 rank ended, 0 left\n")));
  EXPECT_THAT(ReadFile(dir + "/job.toml"), HasSubstr("command = [\"train\"]"));
  EXPECT_THAT(ReadFile(dir + "/plan.txt"), HasSubstr("n1"));
  EXPECT_THAT(
      ReadFile(dir + "/events.jsonl"),
      AllOf(HasSubstr("{\"sequence\":1,"), HasSubstr("\"state\":\"running\""), EndsWith("}\n")));
}

TEST_F(ControllerTest, TwoJobsInOneSecondHaveTwoFolders) {
  const auto first = controller_->Submit(Spec({"n1"}));
  const auto second = controller_->Submit(Spec({"n2"}));
  EXPECT_NE(first->output_dir(), second->output_dir());
}

TEST_F(ControllerTest, AWrongSubmitLeavesNothing) {
  v1::JobSpec spec = Spec({"n1"});
  spec.mutable_parallel()->set_tp(3);
  EXPECT_EQ(controller_->Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({"n1"});
  spec.add_skip_checks("prot");
  EXPECT_THAT(std::string(controller_->Submit(spec).status().message()),
              HasSubstr("did you mean 'port'?"));
  spec = Spec({"n1"});
  spec.add_command("{locl_rank}");
  EXPECT_EQ(controller_->Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({"n1"}, 8);
  spec.add_command(std::string(200'000, 'x'));
  EXPECT_THAT(std::string(controller_->Submit(spec).status().message()),
              AllOf(HasSubstr("the 8 ranks on n1 take 15"), HasSubstr("KiB, at most 1020 KiB")));
  spec = Spec({});
  EXPECT_THAT(std::string(controller_->Submit(spec).status().message()), HasSubstr("no hosts"));
  spec = Spec({"n1"});
  spec.mutable_grace()->set_seconds(-1);
  EXPECT_EQ(controller_->Submit(spec).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(output_.path() + "/output"));
  EXPECT_THAT(controller_->ListJobs({})->jobs(), SizeIs(0));
}

TEST_F(ControllerTest, AnOutputFolderThatCannotBeMadeIsNamed) {
  v1::JobSpec spec = Spec({"n1"});
  spec.set_output_root("/proc/nothing");
  EXPECT_THAT(std::string(controller_->Submit(spec).status().message()),
              HasSubstr("output folder: mkdir /proc/nothing"));
}

TEST_F(ControllerTest, SecretsReachTheRanksAndNoFile) {
  v1::JobSpec spec = Spec({"n1"});
  auto& secret = *spec.add_secrets();
  secret.set_name("WANDB_API_KEY");
  secret.set_value("hunter2hunter2");
  const std::string job = Submit(spec);
  const v1::Job running = WaitForState(job, v1::JOB_STATE_RUNNING);
  EXPECT_EQ(running.spec().secrets(0).value(), "***");
  cluster_.WithNode("n1", [](FakeNode& node) {
    bool found = false;
    for (const auto& variable : node.specs().at(0).env())
      found = found || variable.value() == "hunter2hunter2";
    EXPECT_TRUE(found);
  });
  EXPECT_TRUE(std::filesystem::exists(state_.path() + "/secrets/1"));
  Stop(job, 0);
  Follower(*controller_, job).WaitForEnd();
  StopController();
  for (const auto& root : {state_.path(), output_.path()}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      if (!entry.is_regular_file()) continue;
      EXPECT_THAT(ReadFile(entry.path()), Not(HasSubstr("hunter2"))) << entry.path();
    }
  }
}

TEST_F(ControllerTest, ListsJobsNodesAndItself) {
  const std::string job = Submit(Spec({"n1", "n2"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  const auto jobs = controller_->ListJobs({});
  ASSERT_THAT(jobs->jobs(), SizeIs(1));
  EXPECT_EQ(jobs->jobs(0).plan().name(), "train");
  EXPECT_THAT(jobs->jobs(0).ranks(), SizeIs(0));
  const auto nodes = controller_->ListNodes();
  ASSERT_THAT(nodes.nodes(), SizeIs(2));
  EXPECT_EQ(nodes.nodes(0).host(), "n1");
  EXPECT_EQ(nodes.nodes(0).state(), v1::LINK_STATE_UP);
  EXPECT_EQ(nodes.nodes(0).transport(), "fake n1");
  EXPECT_EQ(nodes.nodes(0).job_ids(0), "1");
  EXPECT_EQ(controller_->Info().active_jobs(), 1u);
  EXPECT_EQ(controller_->Info().state_dir(), state_.path());
  EXPECT_EQ(controller_->GetJob("trian").status().message(),
            "there is no job named 'trian'; did you mean 'train'?");
}

TEST_F(ControllerTest, ShutdownAsksFirst) {
  const std::string job = Submit(Spec({"n1"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  const auto refused = controller_->Shutdown(false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("1 (train)"));
  EXPECT_FALSE(shut_down_);
  EXPECT_TRUE(controller_->Shutdown(true).ok());
  EXPECT_TRUE(shut_down_);
}

TEST_F(ControllerTest, AFaultOfTheLogsIsPartOfTheStory) {
  const std::string job = Submit(Spec({"n1"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  Follower follower(*controller_, job);
  controller_->ReportLogFault(logs_.last_opened().id,
                              absl::ResourceExhaustedError("write x: No space left"));
  EXPECT_TRUE(follower.WaitFor("logs can't be written: write x: No space left"));
}

}  // namespace
}  // namespace muster::testing
