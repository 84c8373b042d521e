#include "trainer/config/environment.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "trainer/config/error.h"

namespace muster::config {
namespace {

using Getter = std::function<const char*(const char*)>;

std::string Text(const Getter& get, const char* name) {
  const char* value = get(name);
  return value == nullptr ? "" : value;
}

int64_t Number(const Getter& get, const char* name, int64_t fallback, int64_t low, int64_t high) {
  const std::string text = Text(get, name);
  if (text.empty()) return fallback;
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || rest != text.data() + text.size() || value < low || value > high) {
    throw ConfigError(fmt::format(
        "environment variable {}='{}': wants a whole number from {} to {}", name, text, low, high));
  }
  return value;
}

// How a launcher names a rank, the world's size and the rank on its machine.
struct Names {
  const char* rank;
  const char* world_size;
  const char* local_rank;
};

// torchrun's names (and Muster's), which count where they are set; else mpirun's or srun's. Of srun
// the step's size: an sbatch script by itself is one task, whatever its job asked for.
Names NamesIn(const Getter& get) {
  constexpr Names kTorchrun = {"RANK", "WORLD_SIZE", "LOCAL_RANK"};
  constexpr Names kOthers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID"},
  };
  if (get(kTorchrun.rank) != nullptr || get(kTorchrun.world_size) != nullptr) return kTorchrun;
  for (const Names& names : kOthers) {
    if (get(names.rank) != nullptr && get(names.world_size) != nullptr) return names;
  }
  return kTorchrun;
}

}  // namespace

RankEnvironment ReadEnvironment(const Getter& get) {
  constexpr int64_t kMaxWorld = 1 << 24;
  const Names names = NamesIn(get);
  RankEnvironment env;
  env.world_size = Number(get, names.world_size, 1, 1, kMaxWorld);
  env.rank = Number(get, names.rank, 0, 0, kMaxWorld);
  if (env.rank >= env.world_size) {
    throw ConfigError(fmt::format("environment: {}={} must be below {}={}", names.rank, env.rank,
                                  names.world_size, env.world_size));
  }
  env.local_rank = Number(get, names.local_rank, 0, 0, kMaxWorld);
  env.master_addr = Text(get, "MASTER_ADDR");
  env.master_port = Number(get, "MASTER_PORT", 0, 1, 65535);
  if (env.world_size > 1) {
    if (Text(get, names.rank).empty()) {
      throw ConfigError(fmt::format("environment: {}={} but {} is not set", names.world_size,
                                    env.world_size, names.rank));
    }
    if (env.master_addr.empty() || env.master_port == 0) {
      throw ConfigError(fmt::format(
          "environment: {}={} needs MASTER_ADDR and MASTER_PORT (the address of rank 0)",
          names.world_size, env.world_size));
    }
  }
  env.restart_count = Number(get, "TORCHELASTIC_RESTART_COUNT", 0, 0, kMaxWorld);
  env.agent_hosts_store = Text(get, "TORCHELASTIC_USE_AGENT_STORE") == "True";
  env.socket_interface = Text(get, "GLOO_SOCKET_IFNAME");
  env.error_file = Text(get, "TORCHELASTIC_ERROR_FILE");
  env.event_fd = Number(get, "MUSTER_EVENT_FD", -1, 0, kMaxWorld);
  return env;
}

}  // namespace muster::config
