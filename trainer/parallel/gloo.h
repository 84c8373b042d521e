#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/parallel/communicator.h"

namespace muster::parallel {

struct GlooOptions {
  std::string master_addr;
  int64_t master_port = 0;
  int64_t rank = 0;
  int64_t world_size = 1;
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};
  // The store is another process's (torchrun's agent): rank 0 connects to it like the others.
  bool external_store = false;
  // Distinguishes attempts that share one store.
  std::string run_name = "run";
  // Exact network interface; empty: the one on the way to the master.
  std::string interface;
};

// The ranks of a run, who have met at master_addr:master_port (a c10d TCPStore; rank 0 is the
// server) and may connect to each other over TCP, in groups. Throws CommError: the port is taken,
// the master does not answer in time, a peer is gone or late.
class GlooWorld {
 public:
  explicit GlooWorld(const GlooOptions& options);
  ~GlooWorld();

  // The group of these ranks, ascending, of which this rank is one; all of them make the call, with
  // a name that no other group has. Collectives run on CPU tensors of any floating or integer type.
  // One thread uses a communicator. It may outlive the world.
  std::unique_ptr<Communicator> Connect(const std::string& name, const std::vector<int64_t>& ranks);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The group of all ranks.
std::unique_ptr<Communicator> ConnectGloo(const GlooOptions& options);

}  // namespace muster::parallel
