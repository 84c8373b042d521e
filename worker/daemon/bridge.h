#pragma once

#include <absl/status/status.h>

#include "worker/daemon/options.h"

namespace muster::worker {

// `musterd bridge`: joins stdin and stdout to the daemon of this node, which is started if none
// runs; that one ends by itself when it is idle for long. A marker line comes first (see
// common/bridge_marker.h). Returns when the other side of stdin, or the daemon, has gone: OK in the
// first case. Before the marker, any error means that nothing was sent.
absl::Status RunBridge(const Options& options);

}  // namespace muster::worker
