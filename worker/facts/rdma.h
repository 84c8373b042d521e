#pragma once

#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"

namespace muster::facts {

// The ports of the RDMA devices below `root` (/sys/class/infiniband), by name. Empty when there are
// none. Any thread.
std::vector<v1::RdmaPort> RdmaPorts(const std::string& root = "/sys/class/infiniband");

}  // namespace muster::facts
