#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/daemon/probe_helper.h"

namespace muster::worker {

// Finds the node's devices for a hello without making the reactor wait: the vendors' tools can take
// seconds. Reactor thread only.
class DeviceProbe {
 public:
  using Done = std::function<void(const std::vector<v1::Device>&)>;

  // `fake` > 0: that many fake devices instead of asking. Reactor and helper outlive the probe.
  DeviceProbe(Reactor& reactor, ProbeHelper& helper, uint32_t fake)
      : reactor_(reactor), helper_(helper), fake_(fake) {}

  // Calls `done` at once with fake devices, else when the tool has answered. A tool that takes
  // longer than 2.5 s must not make the node look dead: then `done` comes with no devices, and once
  // more if the tool finds some after all. Questions that come while it runs share its answer.
  void Ask(Done done);

 private:
  struct Asked {
    Done done;
    Reactor::TimerId patience = 0;
    bool told = false;  // that there are none yet
  };
  void Answer(const v1::ProbeResult& result);

  Reactor& reactor_;
  ProbeHelper& helper_;
  const uint32_t fake_;
  std::vector<std::shared_ptr<Asked>> waiting_;
};

}  // namespace muster::worker
