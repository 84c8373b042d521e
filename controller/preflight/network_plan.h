#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster::preflight {

// Up to so many nodes, each is asked about each other one; beyond, the head about all, all about
// the head, and node i about i + 1, 2, 4, 8 ... (the ring, and strides that cross every group).
inline constexpr uint32_t kAllPairsLimit = 32;

// Nodes that node `i` of `nodes` connects to, ascending.
std::vector<uint32_t> PeersOf(uint32_t i, uint32_t nodes);

// Ports of one preflight: some of the job's range, else of 20000 to 32000, which the kernel does
// not use for outgoing connections. `nonce` varies them.
std::vector<uint32_t> ProbePorts(const v1::JobSpec& spec, uint64_t nonce);

// The network's part of the probe of each node; nothing for a single node and for nodes that do not
// take part (`absent`). `token`: 16 bytes.
std::vector<v1::NetworkProbe> NetworkProbes(const v1::JobSpec& spec, const v1::Plan& plan,
                                            const std::vector<bool>& absent,
                                            const std::string& token, uint64_t nonce);

}  // namespace muster::preflight
