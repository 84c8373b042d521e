#include "controller/hostfile/allocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace muster::hostfile {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Texts = std::map<std::string, std::string>;

absl::StatusOr<v1::Inventory> Read(const Texts& environment, const Texts& files = {}) {
  AllocationSources sources;
  sources.get_env = [&](const std::string& name) -> std::optional<std::string> {
    const auto it = environment.find(name);
    return it == environment.end() ? std::nullopt : std::optional(it->second);
  };
  sources.read_file = [&](const std::string& path) -> absl::StatusOr<std::string> {
    const auto it = files.find(path);
    if (it == files.end()) return absl::NotFoundError("open " + path + ": No such file");
    return it->second;
  };
  return ReadAllocation(sources);
}

std::vector<std::string> Hosts(const Texts& environment, const Texts& files = {}) {
  const auto inventory = Read(environment, files);
  EXPECT_TRUE(inventory.ok()) << inventory.status();
  std::vector<std::string> out;
  if (!inventory.ok()) return out;
  for (const v1::Host& host : inventory->hosts()) {
    out.push_back(host.host() + (host.has_slots() ? ":" + std::to_string(host.slots()) : ""));
  }
  return out;
}

std::string Refused(const Texts& environment, const Texts& files = {}) {
  const auto inventory = Read(environment, files);
  EXPECT_FALSE(inventory.ok());
  return std::string(inventory.status().message());
}

TEST(Slurm, TasksOfANodeAreSlots) {
  EXPECT_THAT(
      Hosts({{"SLURM_JOB_NODELIST", "gpu[01-02],login1"}, {"SLURM_TASKS_PER_NODE", "8(x2),4"}}),
      ElementsAre("gpu01:8", "gpu02:8", "login1:4"));
  EXPECT_THAT(Hosts({{"SLURM_JOB_NODELIST", "r[1-2]n[1,3]"}, {"SLURM_TASKS_PER_NODE", "2(x4)"}}),
              ElementsAre("r1n1:2", "r1n3:2", "r2n1:2", "r2n3:2"));
}

// sbatch --ntasks-per-node=1 --gpus-per-node=8: one launcher a node, which starts eight ranks.
TEST(Slurm, DevicesCountWhereThereIsOneTaskANode) {
  EXPECT_THAT(Hosts({{"SLURM_JOB_NODELIST", "n[1-2]"},
                     {"SLURM_TASKS_PER_NODE", "1(x2)"},
                     {"SLURM_GPUS_ON_NODE", "8"}}),
              ElementsAre("n1:8", "n2:8"));
  EXPECT_THAT(Hosts({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_GPUS_PER_NODE", "h100:4"}}),
              ElementsAre("n1:4"));
  EXPECT_THAT(Hosts({{"SLURM_JOB_NODELIST", "n[1-2]"},
                     {"SLURM_TASKS_PER_NODE", "4(x2)"},
                     {"SLURM_GPUS_ON_NODE", "8"}}),
              ElementsAre("n1:4", "n2:4"));
}

TEST(Slurm, WithoutCountsTheSlotsAreOpen) {
  EXPECT_THAT(Hosts({{"SLURM_JOB_NODELIST", "n[08-10]"}}), ElementsAre("n08", "n09", "n10"));
}

TEST(Slurm, WhatIsNotUnderstoodIsAnError) {
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n[3-1]"}}), HasSubstr("SLURM_JOB_NODELIST=n[3-1]"));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n[1-2"}}), HasSubstr("SLURM_JOB_NODELIST"));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_TASKS_PER_NODE", "8(x)"}}),
              HasSubstr("8(x2),4"));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "8(x2)"}}),
              AllOf(HasSubstr("2 hosts"), HasSubstr("of 3")));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n1"}, {"SLURM_GPUS_PER_NODE", "h100:4,a100:2"}}),
              HasSubstr("not a number of devices"));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n1,n1"}}), HasSubstr("duplicate host n1"));
}

TEST(Pbs, ALineForEachSlot) {
  const Texts files = {{"/var/spool/1.nodes", "n2\nn2\nn1\nn2\n"}};
  EXPECT_THAT(Hosts({{"PBS_NODEFILE", "/var/spool/1.nodes"}}, files), ElementsAre("n2:3", "n1:1"));
  EXPECT_THAT(Refused({{"PBS_NODEFILE", "/nowhere"}}), HasSubstr("open /nowhere"));
  EXPECT_THAT(Refused({{"PBS_NODEFILE", "/e"}}, {{"/e", "\n"}}), HasSubstr("PBS_NODEFILE"));
}

TEST(Lsf, ThreeForms) {
  EXPECT_THAT(Hosts({{"LSB_HOSTS", "a a b a"}}), ElementsAre("a:3", "b:1"));
  EXPECT_THAT(Hosts({{"LSB_MCPU_HOSTS", "a 16 b 8"}}), ElementsAre("a:16", "b:8"));
  EXPECT_THAT(Hosts({{"LSB_DJOB_HOSTFILE", "/h"}, {"LSB_HOSTS", "z"}}, {{"/h", "a\na\nb\n"}}),
              ElementsAre("a:2", "b:1"));
  EXPECT_THAT(Refused({{"LSB_MCPU_HOSTS", "a 16 b"}}), HasSubstr("LSB_MCPU_HOSTS=a 16 b"));
  EXPECT_THAT(Refused({{"LSB_MCPU_HOSTS", "a x"}}), HasSubstr("HOST SLOTS"));
}

TEST(Allocation, NoneOrTwoAreErrorsAndNeverThisMachine) {
  EXPECT_THAT(Refused({}), AllOf(HasSubstr("not inside an allocation"),
                                 HasSubstr("SLURM_JOB_NODELIST"), HasSubstr("--hostfile FILE")));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", ""}}), HasSubstr("not inside an allocation"));
  EXPECT_THAT(Refused({{"SLURM_JOB_NODELIST", "n1"}, {"LSB_HOSTS", "n2"}}),
              AllOf(HasSubstr("Slurm"), HasSubstr("LSF"), HasSubstr("unset")));
  EXPECT_THAT(Refused({{"LSB_HOSTS", "localhost n1"}}), HasSubstr("localhost"));
}

TEST(Allocation, TheSourceIsTheVariable) {
  EXPECT_EQ(Read({{"LSB_HOSTS", "n1"}})->source(), "LSB_HOSTS");
  EXPECT_EQ(Read({{"LSB_HOSTS", "n1 n2"}})->hosts(1).line(), 2U);
}

}  // namespace
}  // namespace muster::hostfile
