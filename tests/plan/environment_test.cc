#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan_testing.h"

namespace muster::plan {
namespace {

using testing::HasSubstr;

v1::RankSpec Rank(const v1::JobSpec& spec, uint32_t rank, const Launch& launch = SomeLaunch()) {
  const auto plan = MakePlan(spec);
  EXPECT_TRUE(plan.ok()) << plan.status();
  const auto out = MakeRankSpec(spec, *plan, rank, launch);
  EXPECT_TRUE(out.ok()) << out.status();
  return *out;
}

TEST(Environment, IsTorchruns) {
  const v1::RankSpec rank =
      Rank(Job("10.0.0.1 slots=2\n10.0.0.2 slots=3\n", {"x"}), 3, {2, 29555, "run-7", ""});
  EXPECT_EQ(Env(rank, "RANK"), "3");
  EXPECT_EQ(Env(rank, "LOCAL_RANK"), "1");
  EXPECT_EQ(Env(rank, "WORLD_SIZE"), "5");
  EXPECT_EQ(Env(rank, "LOCAL_WORLD_SIZE"), "3");
  EXPECT_EQ(Env(rank, "GROUP_RANK"), "1");
  EXPECT_EQ(Env(rank, "GROUP_WORLD_SIZE"), "2");
  EXPECT_EQ(Env(rank, "ROLE_RANK"), "3");
  EXPECT_EQ(Env(rank, "ROLE_WORLD_SIZE"), "5");
  EXPECT_EQ(Env(rank, "ROLE_NAME"), "default");
  EXPECT_EQ(Env(rank, "MASTER_ADDR"), "10.0.0.1");
  EXPECT_EQ(Env(rank, "MASTER_PORT"), "29555");
  EXPECT_EQ(Env(rank, "TORCHELASTIC_RESTART_COUNT"), "2");
  EXPECT_EQ(Env(rank, "TORCHELASTIC_MAX_RESTARTS"), "0");
  EXPECT_EQ(Env(rank, "TORCHELASTIC_RUN_ID"), "run-7");
  EXPECT_EQ(Env(rank, "TORCHELASTIC_USE_AGENT_STORE"), "False");
  EXPECT_EQ(Env(rank, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "1");
  EXPECT_EQ(Env(rank, "OMP_NUM_THREADS"), "1");
  EXPECT_EQ(Env(rank, "CUDA_VISIBLE_DEVICES"), "<unset>");
  EXPECT_EQ(Env(rank, "GLOO_SOCKET_IFNAME"), "<unset>");
}

TEST(Environment, Coordinates) {
  v1::JobSpec spec = Job("a slots=8\n", {"muster-train"});
  *spec.mutable_parallel() = Sized(2, 2, 1, 1, 16);
  spec.set_name("job");
  const v1::RankSpec rank = Rank(spec, 7, {1, 29555, "run", "/ckpt/iter_10"});
  EXPECT_EQ(Env(rank, "MUSTER_RANK"), "7");
  EXPECT_EQ(Env(rank, "MUSTER_TP"), "2");
  EXPECT_EQ(Env(rank, "MUSTER_DP"), "2");
  EXPECT_EQ(Env(rank, "MUSTER_TP_RANK"), "1");
  EXPECT_EQ(Env(rank, "MUSTER_CP_RANK"), "0");
  EXPECT_EQ(Env(rank, "MUSTER_DP_RANK"), "1");
  EXPECT_EQ(Env(rank, "MUSTER_PP_RANK"), "1");
  EXPECT_EQ(Env(rank, "MUSTER_GBS"), "16");
  EXPECT_EQ(Env(rank, "MUSTER_NUM_MICROBATCHES"), "8");
  EXPECT_EQ(Env(rank, "MUSTER_JOB_NAME"), "job");
  EXPECT_EQ(Env(rank, "MUSTER_ATTEMPT"), "1");
  EXPECT_EQ(Env(rank, "MUSTER_LAST_CHECKPOINT"), "/ckpt/iter_10");
  EXPECT_EQ(Env(Rank(Job("a slots=1\n", {"x"}), 0), "MUSTER_GBS"), "<unset>");
}

TEST(Environment, IsSortedAndHasNoNameTwice) {
  v1::JobSpec spec = Job("a slots=2\n", {"x"});
  AddEnv(spec, "OMP_NUM_THREADS", "4");
  const v1::RankSpec rank = Rank(spec, 0);
  EXPECT_EQ(Env(rank, "OMP_NUM_THREADS"), "4");
  EXPECT_TRUE(std::is_sorted(rank.env().begin(), rank.env().end(),
                             [](const auto& a, const auto& b) { return a.name() < b.name(); }));
  EXPECT_EQ(std::adjacent_find(rank.env().begin(), rank.env().end(),
                               [](const auto& a, const auto& b) { return a.name() == b.name(); }),
            rank.env().end());
}

TEST(Environment, OneRankANodeMayUseAllThreads) {
  EXPECT_EQ(Env(Rank(Job("a slots=1\n", {"x"}), 0), "OMP_NUM_THREADS"), "<unset>");
}

// As after torchrun: LOCAL_RANK is an index into the visible devices.
TEST(Environment, GpusListsBecomeVisibleDevices) {
  v1::JobSpec spec = Job("a gpus=7,5,6\n", {"x"});
  EXPECT_EQ(Env(Rank(spec, 2), "CUDA_VISIBLE_DEVICES"), "7,5,6");
  EXPECT_EQ(Env(Rank(spec, 2), "MUSA_VISIBLE_DEVICES"), "7,5,6");
  EXPECT_EQ(Env(Rank(spec, 2), "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
  EXPECT_EQ(Env(Rank(spec, 2), "LOCAL_RANK"), "2");
  spec.set_nproc_per_node(2);
  EXPECT_EQ(Env(Rank(spec, 1), "CUDA_VISIBLE_DEVICES"), "7,5");
}

TEST(Environment, Interfaces) {
  const v1::JobSpec spec = Job("a slots=1 iface=bond0\nb slots=1 iface=eth1\n", {"x"});
  EXPECT_EQ(Env(Rank(spec, 0), "GLOO_SOCKET_IFNAME"), "bond0");
  EXPECT_EQ(Env(Rank(spec, 0), "NCCL_SOCKET_IFNAME"), "=bond0");
  EXPECT_EQ(Env(Rank(spec, 1), "NCCL_SOCKET_IFNAME"), "=eth1");
  const v1::JobSpec loopback = Job("127.0.0.2 slots=1\n127.0.0.3 slots=1\n", {"x"});
  EXPECT_EQ(Env(Rank(loopback, 1), "GLOO_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(Env(Rank(loopback, 1), "NCCL_SOCKET_IFNAME"), "<unset>");
  EXPECT_EQ(Env(Rank(Job("::1 slots=1\n", {"x"}), 0), "GLOO_SOCKET_IFNAME"), "lo");
}

TEST(Environment, TheJobsOwnVariablesAndSecrets) {
  v1::JobSpec spec = Job("a slots=1\n", {"x"});
  AddEnv(spec, "NCCL_DEBUG", "INFO");
  AddEnv(spec, "JSON", R"({"a": "b c"})");
  spec.add_secrets()->set_name("WANDB_API_KEY");
  spec.mutable_secrets(0)->set_value("hunter2");
  const v1::RankSpec rank = Rank(spec, 0);
  EXPECT_EQ(Env(rank, "JSON"), R"({"a": "b c"})");
  EXPECT_EQ(Env(rank, "WANDB_API_KEY"), "hunter2");
}

TEST(Environment, TheContractIsNotForJobsToChange) {
  for (const char* name : {"RANK", "MASTER_ADDR", "WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE",
                           "TORCHELASTIC_ERROR_FILE", "MUSTER_TP", "MUSTER_EVENT_FD"}) {
    v1::JobSpec spec = Job("a slots=1\n", {"x"});
    AddEnv(spec, name, "1");
    EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr(name));
    EXPECT_EQ(MakePlan(spec).status().code(), absl::StatusCode::kInvalidArgument);
  }
  v1::JobSpec spec = Job("a slots=1\n", {"x"});
  AddEnv(spec, "CUDA_VISIBLE_DEVICES", "1");
  EXPECT_TRUE(MakePlan(spec).ok());
  *spec.mutable_inventory() = Hosts("a gpus=1\n");
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("gpus="));
}

TEST(Environment, BadVariables) {
  for (const char* name : {"", "A=B", "1A", "A B"}) {
    v1::JobSpec spec = Job("a slots=1\n", {"x"});
    AddEnv(spec, name, "1");
    EXPECT_FALSE(MakePlan(spec).ok()) << name;
  }
  v1::JobSpec spec = Job("a slots=1\n", {"x"});
  AddEnv(spec, "A", "1");
  spec.add_secrets()->set_name("A");
  EXPECT_THAT(MakePlan(spec).status().message(), HasSubstr("given twice"));
  v1::JobSpec nul = Job("a slots=1\n", {"x"});
  AddEnv(nul, "A", std::string(1, '\0'));
  EXPECT_FALSE(MakePlan(nul).ok());
}

}  // namespace
}  // namespace muster::plan
