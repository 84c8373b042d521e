#pragma once

#include <chrono>
#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/facts/run_tool.h"

namespace muster::facts {

// What the script of AskPython prints: `python=3.11.2`, `torch=...` ... one a line.
v1::PythonFact ParsePython(const ToolOutput& output);

// Versions of this very interpreter and of PyTorch beside it, with the environment of a rank.
// PyTorch is not imported: that takes seconds. Blocks until the deadline at most; any thread.
v1::PythonFact AskPython(const std::string& interpreter, const Environment& environment,
                         std::chrono::steady_clock::time_point deadline);

}  // namespace muster::facts
