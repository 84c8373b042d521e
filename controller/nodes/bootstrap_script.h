#pragma once

#include <string>
#include <vector>

#include "controller/nodes/worker_programs.h"

namespace muster::nodes {

struct Bootstrap {
  std::string name;                 // the node's name
  std::string musterd;              // an installed worker is looked for here, then in PATH
  std::vector<WorkerBuild> builds;  // what can be used or pushed, by architecture
};

// The program that /bin/sh runs on a host (docs/transports.md): it becomes the bridge of the worker
// of exactly one of these builds, which it finds in a folder of its own, finds installed, or asks
// for (common/bridge_marker.h) and puts into such a folder. A request is answered by a line with
// the number of bytes, and those bytes. Needs a POSIX shell and what coreutils and busybox have.
// When it can't, it exits with kBootstrapFailed and says why on stderr after kBootstrapSays. Pure.
std::string BootstrapScript(const Bootstrap& bootstrap);

inline constexpr int kBootstrapFailed = 3;
inline constexpr char kBootstrapSays[] = "muster: ";

}  // namespace muster::nodes
