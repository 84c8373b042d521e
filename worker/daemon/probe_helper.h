#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/reactor.h"
#include "muster/v1/worker.pb.h"
#include "worker/facts/run_tool.h"

namespace muster::worker {

// Lets a process of its own answer a probe (`musterd --answer-probe`), so that a dead file system
// or a stuck driver stalls neither the reactor nor the end of the daemon. It has the base
// environment and the limits of a rank. Reactor thread only.
class ProbeHelper {
 public:
  using Done = std::function<void(v1::ProbeResult)>;
  struct Options {
    std::string program = "/proc/self/exe";
    std::string state_dir;
    uint32_t fake_devices = 0;
    std::string kernel_log;          // instead of the kernel's own
    facts::Environment environment;  // the ranks' base environment
  };

  ProbeHelper(Reactor& reactor, Options options);
  // Ends the processes with all that they started; no `done` comes any more.
  ~ProbeHelper();
  ProbeHelper(const ProbeHelper&) = delete;
  ProbeHelper& operator=(const ProbeHelper&) = delete;

  // Calls `done` once, always later: with the answer, or with `probe_error` when the process fails
  // or keeps silent 2 s longer than the probe's time limit allows.
  void Ask(const v1::Probe& probe, Done done);

 private:
  struct Running;
  void Start(Running& running, const v1::Probe& probe);
  void Read(const std::shared_ptr<Running>& running);
  void Finish(const std::shared_ptr<Running>& running, v1::ProbeResult result);

  Reactor& reactor_;
  const Options options_;
  std::vector<std::shared_ptr<Running>> running_;
};

}  // namespace muster::worker
