#pragma once

#include <cstdint>

namespace muster::facts {

// Limits that a process of ours can raise itself to, as the shim does for each rank; all ones:
// unlimited. Any thread.
struct Limits {
  uint64_t memlock_bytes = 0;
  uint64_t nofile = 0;
};
Limits RankLimits();

}  // namespace muster::facts
