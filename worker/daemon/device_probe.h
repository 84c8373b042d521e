#pragma once

#include <functional>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/daemon/probe_helper.h"

namespace muster::worker {

// Finds the node's devices for a hello without making the reactor wait: the vendors' tools can take
// seconds. Reactor thread only.
class DeviceProbe {
 public:
  using Done = std::function<void(const std::vector<v1::Device>&)>;

  // `fake` > 0: that many fake devices instead of asking. The helper outlives the probe.
  DeviceProbe(ProbeHelper& helper, uint32_t fake) : helper_(helper), fake_(fake) {}

  // Calls `done` once: at once with fake devices, else when the tool has answered or its time is
  // over. Questions that come while the tool runs share its answer.
  void Ask(Done done);

 private:
  void Answer(const v1::ProbeResult& result);

  ProbeHelper& helper_;
  const uint32_t fake_;
  std::vector<Done> waiting_;
};

}  // namespace muster::worker
