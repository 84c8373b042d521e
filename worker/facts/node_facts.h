#pragma once

#include <cstdint>
#include <string>

// Facts of the node, one probe per file. All read local files only and return at once; any thread.

namespace muster::facts {

// Processors this process may use.
uint32_t Cores();

// Physical memory.
uint64_t MemoryBytes();

// /proc/sys/kernel/random/boot_id: changes with every boot, differs between machines; "" if
// unreadable.
std::string BootId();

// Inode of this process's network namespace; 0 if unreadable.
uint64_t NetNamespace();

std::string HostName();

}  // namespace muster::facts
