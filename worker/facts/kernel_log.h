#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/worker.pb.h"

namespace muster::facts {

// One record of /dev/kmsg ("6,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=..., GPU has
// fallen off the bus.") as a device fault; nothing for other records. `boot_ns`: CLOCK_REALTIME at
// boot.
std::optional<v1::KernelFault> ParseKernelFault(std::string_view record, int64_t boot_ns);

// The device faults since `since_ns`, oldest first, at most the last 100. Empty when the log may
// not be read. Any thread.
std::vector<v1::KernelFault> KernelFaults(int64_t since_ns);

}  // namespace muster::facts
