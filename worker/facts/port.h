#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/tcp_table.h"
#include "common/unique_fd.h"
#include "worker/facts/proc_reader.h"

namespace muster::facts {

// A TCP port that nobody else can listen on while `socket` is open.
struct HeldPort {
  UniqueFd socket;
  uint32_t port = 0;
  std::string error;  // "127.0.0.2:29500 is in use by pid 812 (python train.py)"
};

// Which port: this one, else any of a range, else any.
struct PortWish {
  uint32_t port = 0;
  uint32_t first = 0;
  uint32_t last = 0;
};

// Listens on the port of `address` (numeric; "" or a name: every address). One that is chosen is
// free on every address. Any port: below the range that the kernel uses for outgoing connections,
// so that none of those can take it between the release and the rank's own bind.
HeldPort HoldPort(const std::string& address, const PortWish& wish, const ProcReader& proc);

// The socket that listens on `address`:`port`, or nothing.
std::optional<TcpEntry> FindListener(const std::string& address, uint32_t port);

// Who listens on `address`:`port`: "127.0.0.2:29500 is in use by pid 812 (python train.py)".
std::string DescribePortInUse(const std::string& address, uint32_t port, const ProcReader& proc);

}  // namespace muster::facts
