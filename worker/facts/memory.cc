#include <unistd.h>

#include "worker/facts/node_facts.h"

namespace muster::facts {

uint64_t MemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace muster::facts
