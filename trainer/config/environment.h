#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Who this rank is, from the variables that torchrun, Muster, mpirun and srun set.

namespace muster::config {

struct RankEnvironment {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  std::string master_addr;  // needed when world_size > 1
  int64_t master_port = 0;
  int64_t restart_count = 0;  // TORCHELASTIC_RESTART_COUNT: separates attempts that share a store
  bool agent_hosts_store = false;  // TORCHELASTIC_USE_AGENT_STORE=True: rank 0 is a client too
  std::string socket_interface;    // GLOO_SOCKET_IFNAME: the exact interface for collectives
  std::string error_file;          // TORCHELASTIC_ERROR_FILE: where a failed rank writes its record
  int64_t event_fd = -1;           // MUSTER_EVENT_FD: where JSON lines go
};

// `get` returns a variable's value or null, as std::getenv. Rank and world size are torchrun's RANK
// and WORLD_SIZE, else what mpirun (Open MPI, MPICH, Intel MPI) or srun set; without any of them
// the rank is alone. Throws ConfigError for a value that can't be.
RankEnvironment ReadEnvironment(const std::function<const char*(const char*)>& get);

}  // namespace muster::config
