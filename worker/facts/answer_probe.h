#pragma once

#include <chrono>
#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/facts/run_tool.h"

namespace muster::facts {

struct ProbeSurroundings {
  Environment environment;    // the ranks' base environment
  std::string state_dir;      // of the daemon
  uint32_t fake_devices = 0;  // instead of asking the device tools
  std::string kernel_log;     // instead of the kernel's own; "" = that
};

// All answers to a probe but for the port, which the daemon itself holds. What hangs (a dead file
// system, a stuck driver) is answered as timed out after the probe's time limit, and its thread is
// left behind: only for a process that then ends with _exit(2).
v1::ProbeResult AnswerProbe(const v1::Probe& probe, const ProbeSurroundings& surroundings);

// The probe's time limit, or the default.
std::chrono::milliseconds TimeLimitOf(const v1::Probe& probe);

}  // namespace muster::facts
