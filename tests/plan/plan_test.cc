#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(MakePlan, ComputesDpAndGbsWithTheArithmeticShown) {
  v1::JobSpec spec = Job("node01 slots=8\nnode02 slots=8\n", {"muster-train"});
  *spec.mutable_parallel() = Sized(1, 2, 1, 1, 0, 128);
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->world(), 16U);
  EXPECT_EQ(plan->dp(), 8U);
  EXPECT_EQ(plan->global_batch(), 1024U);
  EXPECT_EQ(plan->num_microbatches(), 128U);
  EXPECT_THAT(plan->arithmetic(), ElementsAre("16 GPUs / (TP 1 x PP 2 x CP 1) = DP 8",
                                              "GBS = MBS 1 x 128 x DP 8 = 1024"));
  EXPECT_EQ(plan->name(), "tp1_pp2_dp8_mbs1_numbs128_gbs1024_gpus16");
  EXPECT_THAT(plan->warnings(), IsEmpty());
}

TEST(MakePlan, GlobalBatchGivesTheNumberOfMicrobatches) {
  v1::JobSpec spec = Job("a slots=8\n", {"muster-train"});
  *spec.mutable_parallel() = Sized(2, 1, 2, 2, 64);
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->dp(), 2U);
  EXPECT_EQ(plan->num_microbatches(), 16U);
  EXPECT_EQ(plan->name(), "tp2_pp1_cp2_dp2_mbs2_numbs16_gbs64_gpus8");
}

TEST(MakePlan, PlainCommandNeedsNoBatch) {
  const auto plan = MakePlan(Job("a slots=2\n", {"/usr/bin/python3", "train.py"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->world(), 2U);
  EXPECT_EQ(plan->dp(), 2U);
  EXPECT_EQ(plan->global_batch(), 0U);
  EXPECT_EQ(plan->name(), "train");
  EXPECT_THAT(plan->arithmetic(), ElementsAre("2 slots / (TP 1 x PP 1 x CP 1) = DP 2"));
}

TEST(MakePlan, HostfileOrderIsRankOrderAndSparesWait) {
  const auto plan =
      MakePlan(Job("node10 slots=1\nwait slots=4 spare\nnode2 slots=2\nnode1 slots=1\n", {"x"}));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->nodes_size(), 3);
  EXPECT_EQ(plan->nodes(0).host().host(), "node10");
  EXPECT_EQ(plan->nodes(1).host().host(), "node2");
  EXPECT_EQ(plan->nodes(1).first_rank(), 1U);
  EXPECT_EQ(plan->nodes(2).first_rank(), 3U);
  EXPECT_EQ(plan->ranks(2).node(), 1U);
  EXPECT_EQ(plan->ranks(2).local_rank(), 1U);
}

TEST(MakePlan, NnodesAndNprocPerNode) {
  v1::JobSpec spec = Job("a slots=8\nb slots=8\nc slots=8\n", {"x"});
  spec.set_nnodes(2);
  spec.set_nproc_per_node(3);
  EXPECT_EQ(MakePlan(spec)->world(), 6U);
  spec.set_nnodes(4);
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("hosts has 3"));
  spec.set_nnodes(2);
  spec.set_nproc_per_node(9);
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("a (hosts:1) has 8 slots"));
}

TEST(MakePlan, UnknownSlotsAreAFailedPrecondition) {
  v1::JobSpec spec = Job("a slots=2\nb\n", {"x"});
  EXPECT_EQ(MakePlan(spec).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("b (hosts:2)"));
  spec.set_nproc_per_node(2);
  EXPECT_EQ(MakePlan(spec)->world(), 4U);
}

TEST(MakePlan, GpusListsNumberTheDevices) {
  v1::JobSpec spec = Job("a gpus=7,5,6\nb slots=3\n", {"x"});
  auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->ranks(0).device(), 7U);
  EXPECT_EQ(plan->ranks(2).device(), 6U);
  EXPECT_FALSE(plan->ranks(3).has_device());
  spec.set_nproc_per_node(2);
  plan = MakePlan(spec);
  EXPECT_EQ(plan->ranks(1).device(), 5U);
  EXPECT_FALSE(plan->ranks(2).has_device());
}

TEST(MakePlan, DataAddress) {
  const auto plan =
      MakePlan(Job("a slots=1 addr=10.1.0.1\n10.0.0.2 slots=1\nfd00::3 slots=1\n", {"x"}));
  EXPECT_EQ(plan->nodes(0).data_addr(), "10.1.0.1");
  EXPECT_EQ(plan->nodes(1).data_addr(), "10.0.0.2");
  EXPECT_EQ(plan->nodes(2).data_addr(), "fd00::3");
  EXPECT_EQ(MakePlan(Job("localhost slots=1\n", {"x"}))->nodes(0).data_addr(), "127.0.0.1");
}

TEST(MakePlan, Warnings) {
  v1::JobSpec spec = Job("g_a slots=2 type=A100\nb slots=4 type=H100\n", {"x"});
  *spec.mutable_parallel() = Sized(3, 1, 1);
  const auto plan = MakePlan(spec);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(plan->warnings(),
              ElementsAre(HasSubstr("1 of 2 TP groups cross hosts (ranks 0-2 from g_a to b)"),
                          HasSubstr("unequal slots (g_a 2, b 4)"),
                          HasSubstr("A100 on g_a, H100 on b"), HasSubstr("hosts:1: '_'")));
}

TEST(MakePlan, RefusesBadJobs) {
  EXPECT_THAT(MakePlan(Job("a slots=1\n", {})).status().message(), HasSubstr("no command"));
  EXPECT_THAT(MakePlan(Job("", {"x"})).status().message(), HasSubstr("no hosts"));
  v1::JobSpec spec = Job("a slots=1\n", {"x"});
  for (const char* name : {"a/b", ".x", "last", "17", "a b"}) {
    spec.set_name(name);
    EXPECT_FALSE(MakePlan(spec).ok()) << name;
  }
  spec.set_name("ok-1_a.b+c");
  EXPECT_EQ(MakePlan(spec)->name(), "ok-1_a.b+c");
  spec.add_flags()->set_name("lr");
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("[flags] is for muster-train"));
}

TEST(MakePlan, NamesOfOddCommandsAreFitForFolders) {
  EXPECT_EQ(MakePlan(Job("a slots=1\n", {"./my prog!.sh"}))->name(), "my_prog_.sh");
  using Words = std::vector<std::string>;
  const std::vector<std::pair<Words, std::string>> named = {
      {{"python3", "/x/train.py", "--lr", "1"}, "train"},
      {{"/opt/bin/python3.11", "-u", "main", "x"}, "main"},
      {{"python", "-m", "pkg.train", "y"}, "train"},
      {{"python", "-m", "torch.distributed.run", "train.py"}, "train"},
      {{"python", "-X", "dev", "-c", "print(1)"}, "python"},
      {{"python", "-c", "print(1)"}, "python"},
      {{"python3"}, "python3"},
      {{"pythonic", "x"}, "pythonic"},
      {{"bash", "./run.sh"}, "run"},
      {{"sh", "-ec", "exit 1"}, "sh"},
      {{"torchrun", "--nproc_per_node", "4", "finetune.py"}, "finetune"},
      {{"torchrun", "--standalone", "finetune.py"}, "finetune"},
      {{"./train.py"}, "train.py"}};
  for (const auto& [words, name] : named) {
    EXPECT_EQ(MakePlan(Job("a slots=1\n", words))->name(), name) << words.back();
  }
  EXPECT_EQ(MakePlan(Job("a slots=1\n", {"/bin/7"}))->name(), "job_7");
  EXPECT_EQ(MakePlan(Job("a slots=1\n", {"/bin/last"}))->name(), "job_last");
}

TEST(MakePlan, RefusesAbsurdWorlds) {
  v1::JobSpec spec = Job("n[1-65536] slots=4096\n", {"x"});
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("more than 1048576 ranks"));
}

TEST(MakeRankSpec, RefusesRanksAndPortsThatDoNotExist) {
  const v1::JobSpec spec = Job("a slots=1\n", {"x"});
  const auto plan = MakePlan(spec);
  EXPECT_FALSE(MakeRankSpec(spec, *plan, 1, SomeLaunch()).ok());
  EXPECT_FALSE(MakeRankSpec(spec, *plan, 0, {0, 0, "r", ""}).ok());
  EXPECT_FALSE(MakeRankSpec(spec, *plan, 0, {0, 70000, "r", ""}).ok());
  EXPECT_EQ(MakeRankSpec(spec, *plan, 0, SomeLaunch())->working_dir(), "/work");
}

}  // namespace
}  // namespace muster::plan
