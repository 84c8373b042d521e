#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "worker/facts/proc_reader.h"

namespace muster::facts {

// Whether a rank's last words say that a port was taken.
bool SaysPortInUse(std::string_view words);

// The ports that such words may mean: numbers on lines that say so. At most 16. Pure.
std::vector<uint32_t> PortsInUse(std::string_view words);

// Who holds the ports that `words` call in use, the rendezvous port among them:
// "127.0.0.2:29500 is in use by pid 812 (python train.py)". Looks only if they do. Any thread.
std::vector<std::string> DescribePortsInUse(std::string_view words, const std::string& address,
                                            uint32_t rendezvous_port, const ProcReader& proc);

}  // namespace muster::facts
