#include <sys/stat.h>

#include "worker/facts/node_facts.h"

namespace muster::facts {

uint64_t NetNamespace() {
  struct stat info;
  return stat("/proc/self/ns/net", &info) == 0 ? info.st_ino : 0;
}

}  // namespace muster::facts
