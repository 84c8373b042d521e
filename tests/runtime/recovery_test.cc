#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/runtime/records.h"
#include "tests/runtime/controller_fixture.h"

// The controller goes and comes back; nodes and store stay.

namespace muster::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(ControllerTest, ARunningJobIsTakenUpAgain) {
  const std::string job = Submit(Spec({"n1", "n2"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  StopController();
  EXPECT_EQ(cluster_.Running("n1") + cluster_.Running("n2"), 2u) << "jobs run on";
  cluster_.ExitRank("n1", 0, 0);  // while there is no controller
  StartController();
  Follower follower(*controller_, job);
  EXPECT_TRUE(follower.WaitFor("the controller was restarted and takes the job up again"));
  EXPECT_TRUE(follower.WaitFor("rank 0 on n1 exited with code 0"));
  cluster_.ExitRank("n2", 1, 0);
  const v1::Job ended = follower.WaitForEnd();
  EXPECT_EQ(ended.state(), v1::JOB_STATE_SUCCEEDED);
  const auto events = follower.events();
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence(), i + 1);
  StopController();
  const std::string lines = ReadFile(ended.output_dir() + "/events.jsonl");
  EXPECT_EQ(static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n')), events.size());
}

TEST_F(ControllerTest, ANodeThatIsGoneAfterTheRestartIsLost) {
  const std::string job = Submit(Spec({"n1", "n2"}));
  WaitForState(job, v1::JOB_STATE_RUNNING);
  StopController();
  cluster_.Cut("n2");
  StartController();
  const v1::Job ended = Follower(*controller_, job).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 122);
  EXPECT_EQ(cluster_.Running("n1"), 0u);
  // Also what is still to be stopped is remembered.
  StopController();
  cluster_.Heal("n2");
  StartController();
  for (int i = 0; i < 1000 && cluster_.Running("n2") > 0; ++i)
    absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(cluster_.Running("n2"), 0u);
}

TEST_F(ControllerTest, AQueuedJobWithSecretsStartsAfterTheRestart) {
  const std::string first = Submit(Spec({"n1"}));
  WaitForState(first, v1::JOB_STATE_RUNNING);
  v1::JobSpec spec = Spec({"n1"});
  spec.add_secrets()->set_name("KEY");
  spec.mutable_secrets(0)->set_value("open sesame");
  const std::string second = Submit(spec);
  StopController();
  StartController();
  Stop(first, 0);
  WaitForState(second, v1::JOB_STATE_RUNNING);
  cluster_.WithNode("n1", [](FakeNode& node) {
    bool found = false;
    for (const auto& variable : node.specs().at(0).env())
      found = found || variable.value() == "open sesame";
    EXPECT_TRUE(found);
  });
}

TEST_F(ControllerTest, LostSecretsEndAJobThatStillNeedsThem) {
  const std::string first = Submit(Spec({"n1"}));
  WaitForState(first, v1::JOB_STATE_RUNNING);
  v1::JobSpec spec = Spec({"n1"});
  spec.add_secrets()->set_name("KEY");
  const std::string second = Submit(spec);
  StopController();
  std::filesystem::remove_all(state_.path() + "/secrets");
  StartController();
  const v1::Job ended = Follower(*controller_, second).WaitForEnd();
  EXPECT_EQ(ended.outcome().code(), 125);
  EXPECT_THAT(ended.outcome().message(), HasSubstr("the secrets of job 2 are not in"));
}

TEST_F(ControllerTest, NumbersGoOnAndOldJobsStayKnown) {
  Follower(*controller_, Submit(Spec({"n9"}))).WaitForEnd();
  StopController();
  StartController();
  EXPECT_EQ(Submit(Spec({"n1"})), "2");
  EXPECT_THAT(controller_->ListJobs({})->jobs(), SizeIs(2));
  Follower old(*controller_, "1");
  EXPECT_EQ(old.WaitForEnd().outcome().code(), 2);
  EXPECT_FALSE(old.events().empty());
}

TEST(Records, WhatIsDurableComesBack) {
  engine::JobRun job;
  job.id = 3;
  job.state = v1::JOB_STATE_STOPPING;
  job.name = "train";
  job.spec.add_command("train");
  job.spec.add_secrets()->set_value("secret");
  job.plan.emplace().set_world(1);
  job.output_dir = "/out";
  job.submitted_ns = 1;
  job.started_ns = 2;
  job.master_port = 4;
  job.grace = std::chrono::milliseconds(5);
  job.stop = {v1::CAUSE_NODE_LOST, "lost", "n1"};
  job.waits_for = "nothing";
  job.logs_open = true;
  auto& node = job.nodes.emplace_back();
  node.host.set_host("n1");
  node.generation = 7;
  node.goal = v1::GOAL_STOPPED;
  node.grace = std::chrono::milliseconds(5);
  node.stop_reason = "lost";
  node.unverified = true;
  node.unverified_why = "gone";
  node.boot_id = "b";
  node.clock = preflight::ClockOffset{8, 9};
  node.reached = true;
  node.probe_id = 10;

  const auto record = runtime::ToRecord(job);
  EXPECT_EQ(record.spec.secrets(0).value(), "***");
  const engine::JobRun want = engine::Durable(job);
  const engine::JobRun back = runtime::FromRecord(record);
  EXPECT_EQ(back.id, want.id);
  EXPECT_EQ(back.state, want.state);
  EXPECT_EQ(back.name, want.name);
  EXPECT_EQ(back.plan->world(), 1u);
  EXPECT_EQ(back.output_dir, want.output_dir);
  EXPECT_EQ(back.started_ns, want.started_ns);
  EXPECT_EQ(back.master_port, want.master_port);
  EXPECT_EQ(back.grace, want.grace);
  EXPECT_EQ(back.stop->cause, want.stop->cause);
  EXPECT_EQ(back.stop->message, want.stop->message);
  EXPECT_EQ(back.stop->host, want.stop->host);
  EXPECT_EQ(back.waits_for, want.waits_for);
  EXPECT_EQ(back.logs_open, want.logs_open);
  ASSERT_THAT(back.nodes, SizeIs(1));
  EXPECT_EQ(back.nodes[0].generation, 7u);
  EXPECT_EQ(back.nodes[0].goal, v1::GOAL_STOPPED);
  EXPECT_EQ(back.nodes[0].grace, node.grace);
  EXPECT_EQ(back.nodes[0].stop_reason, "lost");
  EXPECT_TRUE(back.nodes[0].unverified);
  EXPECT_EQ(back.nodes[0].unverified_why, "gone");
  EXPECT_EQ(back.nodes[0].boot_id, "b");
  EXPECT_EQ(back.nodes[0].clock->offset_ns, 8);
  EXPECT_EQ(back.nodes[0].clock->uncertainty_ns, 9);
  EXPECT_FALSE(back.nodes[0].reached);
  EXPECT_EQ(back.nodes[0].probe_id, 0u);
}

}  // namespace
}  // namespace muster::testing
