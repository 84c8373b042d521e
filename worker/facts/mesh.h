#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/facts/proc_reader.h"
#include "worker/facts/route.h"

namespace muster::facts {

// One node's part in finding out who reaches whom (NetworkProbe).
struct MeshPeer {
  uint32_t node = 0;
  SocketAddress address;
};
struct MeshTask {
  std::string token;
  uint32_t self = 0;
  SocketAddress listen;
  std::vector<uint32_t> ports;
  std::vector<MeshPeer> connect;
  std::vector<uint32_t> expect;
};

// Listens and connects at the same time, until every peer has answered and every expected node has
// come, or the deadline. A peer that refuses is tried again: it may not have begun. Over a
// connection go 16 bytes of token and two node numbers, and the token and the listener's number
// come back, so that nobody else's listener is taken for a node. Adds port, listen_error,
// connected and heard. Blocks; any thread.
void RunMesh(const MeshTask& task, const ProcReader& proc,
             std::chrono::steady_clock::time_point deadline, v1::NetworkResult& result);

}  // namespace muster::facts
