#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Which processors are near a device. No abseil, no tools: files of /proc and /sys, a few reads.

namespace muster::facts {

// "0-3,8,10-11" -> 0 1 2 3 8 10 11; what is no list gives nothing. Pure.
std::vector<uint32_t> ParseCpuList(std::string_view text);

// The processors that this process may use: cgroup and taskset taken into account. Ascending.
std::vector<uint32_t> OwnCpus();

// The processors of the NUMA node of device number `device`, as nvidia-smi and mthreads-gmi count:
// by PCI address. Empty when there is no such device, its node is not known (a virtual machine), or
// sysfs is hidden. `root` is "/", but for tests.
std::vector<uint32_t> CpusNearDevice(uint32_t device, const std::string& root);

// What a rank for that device is bound to: the near ones among `own`. Empty: not bound, because
// nothing is known, none of them may be used, or they are all that there are.
std::vector<uint32_t> CpusToBind(uint32_t device, const std::vector<uint32_t>& own,
                                 const std::string& root);

}  // namespace muster::facts
