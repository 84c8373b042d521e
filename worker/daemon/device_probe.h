#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "worker/daemon/reactor.h"
#include "worker/facts/devices.h"

namespace muster::worker {

// Asks the device tool without making the reactor wait: nvidia-smi can take seconds. Reactor thread
// only.
class DeviceProbe {
 public:
  using Done = std::function<void(const std::vector<facts::DeviceFact>&)>;

  // `fake` > 0: that many fake devices instead of asking.
  DeviceProbe(Reactor& reactor, uint32_t fake);
  ~DeviceProbe();
  DeviceProbe(const DeviceProbe&) = delete;
  DeviceProbe& operator=(const DeviceProbe&) = delete;

  // Calls `done` once: at once where there is no tool, else when the tool has answered or 10 s have
  // passed. Questions that come while the tool runs share its answer.
  void Ask(Done done);

 private:
  void Start();
  void Read();
  void Answer(const std::vector<facts::DeviceFact>& devices);

  Reactor& reactor_;
  const uint32_t fake_;
  std::vector<Done> waiting_;
  UniqueFd output_;
  std::string text_;
  pid_t tool_ = 0;
  Reactor::TimerId limit_ = 0;
};

}  // namespace muster::worker
