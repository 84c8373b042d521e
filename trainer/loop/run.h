#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/config/environment.h"
#include "trainer/config/parse.h"
#include "trainer/config/resolve.h"
#include "trainer/data/dataset.h"
#include "trainer/data/sharding.h"
#include "trainer/engine/engine.h"
#include "trainer/loop/events.h"
#include "trainer/optim/lr_schedule.h"
#include "trainer/parallel/groups.h"

namespace muster::loop {

// Everything one rank trains with, made by Prepare() and alive to the end of the program. One
// thread.
struct Run {
  config::CommandLine line;
  config::RunSizes sizes;
  config::RankEnvironment env;
  std::chrono::steady_clock::time_point program_start;

  parallel::Groups groups;
  std::unique_ptr<engine::Engine> engine;
  optim::LrSchedule lr;
  optim::LrSchedule decoupled_lr;
  data::Datasets data;
  data::Shard shard;
  EventWriter* events = nullptr;

  const config::TrainConfig& config() const { return line.config; }
  bool IsFirstRank() const { return env.rank == 0; }
  // The rank that prints, as in Megatron.
  bool IsLastRank() const { return env.rank == env.world_size - 1; }
};

// Reads config.json of --load-hf and the tokenizer where sizes come from them, then resolves
// `line`. Throws ConfigError.
config::RunSizes ResolveAll(int64_t world_size, config::CommandLine& line);

// Connects the ranks, opens the data, builds model and optimizer. Weights are the initial ones.
void Prepare(Run& run);

// What the data flags and the length of the run ask for.
data::DataConfig MakeDataConfig(const Run& run);

// The order of the training samples in words. A checkpoint records it: samples consumed so far mean
// others in another order.
std::string DataOrderText(const config::TrainConfig& config);

}  // namespace muster::loop
