#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::ranks {

// A process of an attempt that lives. The text fields are valid UTF-8.
struct Leftover {
  pid_t pid = 0;
  uint64_t start_ticks = 0;
  uint32_t uid = 0;
  std::string user;
  char state = '?';
  std::string command;
  std::string wait_channel;
  std::optional<uint32_t> rank;
  bool in_shim_tree = false;  // a living shim can signal it
};

struct ScanResult {
  std::vector<Leftover> processes;
  // Why the list may be incomplete; empty if it is whole.
  std::string unverified;
};

}  // namespace muster::ranks
