#include <unistd.h>

#include "worker/facts/node_facts.h"

namespace muster::facts {

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

}  // namespace muster::facts
