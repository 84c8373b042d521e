#pragma once

#include <map>
#include <string>

#include "worker/facts/proc_reader.h"
#include "worker/ranks/leftover.h"

namespace muster::ranks {

// Where to look for the processes of one attempt.
struct SweepTarget {
  std::string marker;               // "MUSTER_ATTEMPT=controller/job/attempt"
  uint64_t created_ticks = 0;       // processes that are older cannot be its own
  std::map<pid_t, uint32_t> shims;  // living shims and their ranks
  std::vector<pid_t> cgroup;        // members of the attempt's cgroup
  // A process could have left every shim's tree: a shim was lost, and there is no cgroup that would
  // have kept it.
  bool trees_incomplete = false;
};

// Finds the processes of an attempt in three ways: below its shims (they are subreapers, so even a
// daemonised process stays there), in its cgroup, and by the marker in the environment every
// process inherits. Zombies are no processes.
ScanResult FindLeftovers(const facts::ProcReader& proc, const SweepTarget& target);

// Signals the process if pid and start time still name the same one.
void SignalProcess(const facts::ProcReader& proc, const Leftover& leftover, int signal);

}  // namespace muster::ranks
