#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

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
  // Distinguishes groups and attempts that share one store.
  std::string group_name = "world";
  // Exact network interface; empty: the one on the way to the master.
  std::string interface;
};

// Meets the other ranks at master_addr:master_port (a c10d TCPStore; rank 0 is the server) and
// connects to them over TCP. Collectives run on CPU tensors of any floating or integer type. One
// thread uses a communicator. Throws CommError: the port is taken, the master does not answer in
// time, a peer is gone or late.
std::unique_ptr<Communicator> ConnectGloo(const GlooOptions& options);

}  // namespace muster::parallel
