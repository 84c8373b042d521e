#include <sched.h>
#include <unistd.h>

#include "worker/facts/node_facts.h"

namespace muster::facts {

uint32_t Cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<uint32_t>(CPU_COUNT(&set));
  // More than 1024 processors do not fit a cpu_set_t.
  return static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
}

}  // namespace muster::facts
