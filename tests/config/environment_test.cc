#include "trainer/config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "trainer/config/error.h"

namespace muster::config {
namespace {

using ::testing::HasSubstr;

RankEnvironment Read(const std::map<std::string, std::string>& variables) {
  return ReadEnvironment([&variables](const char* name) -> const char* {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

std::string ErrorOf(const std::map<std::string, std::string>& variables) {
  try {
    Read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Environment, NothingSetMeansAlone) {
  const RankEnvironment env = Read({});
  EXPECT_EQ(env.rank, 0);
  EXPECT_EQ(env.world_size, 1);
  EXPECT_EQ(env.event_fd, -1);
  EXPECT_FALSE(env.agent_hosts_store);
}

TEST(Environment, ReadsWhatTorchrunSets) {
  const RankEnvironment env = Read({{"RANK", "3"},
                                    {"WORLD_SIZE", "4"},
                                    {"LOCAL_RANK", "1"},
                                    {"MASTER_ADDR", "127.0.0.2"},
                                    {"MASTER_PORT", "29500"},
                                    {"TORCHELASTIC_RESTART_COUNT", "2"},
                                    {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                    {"TORCHELASTIC_ERROR_FILE", "/tmp/e.json"},
                                    {"MUSTER_EVENT_FD", "3"}});
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.master_port, 29500);
  EXPECT_EQ(env.restart_count, 2);
  EXPECT_TRUE(env.agent_hosts_store);
  EXPECT_EQ(env.error_file, "/tmp/e.json");
  EXPECT_EQ(env.event_fd, 3);
}

TEST(Environment, ReadsWhatOtherLaunchersSet) {
  const std::map<std::string, std::string> master = {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  const std::map<std::string, std::string> launchers[] = {
      {{"OMPI_COMM_WORLD_RANK", "2"},
       {"OMPI_COMM_WORLD_SIZE", "3"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
      {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}, {"MPI_LOCALRANKID", "1"}},
      {{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_LOCALID", "1"}},
  };
  for (std::map<std::string, std::string> variables : launchers) {
    EXPECT_THAT(ErrorOf(variables), HasSubstr("=3 needs MASTER_ADDR"));
    variables.insert(master.begin(), master.end());
    const RankEnvironment env = Read(variables);
    EXPECT_EQ(env.rank, 2);
    EXPECT_EQ(env.world_size, 3);
    EXPECT_EQ(env.local_rank, 1);
    // A rank of torchrun or Muster below srun or mpirun is what its own launcher says.
    variables["RANK"] = "0";
    variables["WORLD_SIZE"] = "1";
    EXPECT_EQ(Read(variables).world_size, 1);
  }
}

TEST(Environment, AnSbatchScriptIsOneTask) {
  EXPECT_EQ(Read({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).world_size, 1);
  EXPECT_EQ(Read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).world_size, 1);
}

TEST(Environment, ErrorsNameTheVariable) {
  EXPECT_THAT(ErrorOf({{"RANK", "x"}}), HasSubstr("RANK='x'"));
  EXPECT_THAT(ErrorOf({{"WORLD_SIZE", "0"}}), HasSubstr("WORLD_SIZE='0'"));
  EXPECT_THAT(ErrorOf({{"RANK", "4"}, {"WORLD_SIZE", "4"}}), HasSubstr("below WORLD_SIZE=4"));
  EXPECT_THAT(ErrorOf({{"WORLD_SIZE", "2"}}), HasSubstr("RANK is not set"));
  EXPECT_THAT(ErrorOf({{"WORLD_SIZE", "2"}, {"RANK", "0"}}), HasSubstr("MASTER_ADDR"));
  EXPECT_THAT(ErrorOf({{"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT='70000'"));
}

}  // namespace
}  // namespace muster::config
