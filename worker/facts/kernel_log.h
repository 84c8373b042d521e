#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/facts/run_tool.h"

namespace muster::facts {

// A line of the kernel's log that may explain why a rank failed, with `kind`, `pid` (0: it names
// none) and what else it tells; nothing for other lines. Pure.
std::optional<v1::KernelFault> ParseKernelText(std::string_view text);

// The same for a record of /dev/kmsg ("6,1234,5678901,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=...,
// GPU has fallen off the bus."). `boot_ns`: CLOCK_REALTIME at boot.
std::optional<v1::KernelFault> ParseKernelRecord(std::string_view record, int64_t boot_ns);

// The same for a line of `journalctl -k -o short-unix` ("1764417603.123456 host kernel: text").
std::optional<v1::KernelFault> ParseJournalLine(std::string_view line);

// What the kernel has said since `since_ns` (CLOCK_REALTIME), oldest first, at most the last 100:
// from /dev/kmsg, or where that may not be read from the journal. `path` is another file in the
// form of /dev/kmsg, for tests; "" = the real ones. Blocks until the deadline at most; any thread.
v1::KernelLook LookAtKernel(int64_t since_ns, const std::string& path,
                            const Environment& environment,
                            std::chrono::steady_clock::time_point deadline);

// The device faults (Xid) among it, from /dev/kmsg alone; none without NVIDIA's driver. Any thread.
std::vector<v1::KernelFault> KernelFaults(int64_t since_ns);

}  // namespace muster::facts
