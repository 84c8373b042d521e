#pragma once

#include <chrono>

#include "muster/v1/worker.pb.h"
#include "worker/facts/proc_reader.h"
#include "worker/facts/run_tool.h"

namespace muster::facts {

// Which interface leads to the others, and who reaches whom. Names are resolved as this machine
// does it. Blocks until the deadline at most; any thread.
v1::NetworkResult AnswerNetwork(const v1::NetworkProbe& probe, const Environment& environment,
                                const ProcReader& proc,
                                std::chrono::steady_clock::time_point deadline);

}  // namespace muster::facts
