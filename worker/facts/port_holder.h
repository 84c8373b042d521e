#pragma once

#include <string>

#include "common/tcp_table.h"
#include "worker/facts/proc_reader.h"

namespace muster::facts {

// The process that has this socket open; 0 when none may be seen.
pid_t HolderOf(const TcpEntry& entry, const ProcReader& proc);

// "pid 812 (python train.py)" for a process of ours or of anybody whose descriptors may be read,
// else "uid 1000".
std::string DescribeHolder(const TcpEntry& entry, const ProcReader& proc);

}  // namespace muster::facts
