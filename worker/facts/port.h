#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "worker/facts/proc_reader.h"

namespace muster::facts {

// A TCP port that nobody else can listen on while `socket` is open.
struct HeldPort {
  UniqueFd socket;
  uint32_t port = 0;
  std::string error;  // "127.0.0.2:29500 is in use by pid 812 (python train.py)"
};

// Listens on `port` of `address` (numeric; "" or a name: every address), or on a free port of every
// address when `port` is 0. Such a port is taken below the range that the kernel uses for outgoing
// connections, so that none of those can take it between the release and the rank's own bind.
HeldPort HoldPort(const std::string& address, uint32_t port, const ProcReader& proc);

// Who listens on `address`:`port`: "127.0.0.2:29500 is in use by pid 812 (python train.py)".
std::string DescribePortInUse(const std::string& address, uint32_t port, const ProcReader& proc);

}  // namespace muster::facts
