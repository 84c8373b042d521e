#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace muster::bench {

// The end of a GPU benchmark's main: reads the command line into `app`, then runs `bench`. The exit
// code: 77 where there is no GPU, 1 with its message after an exception.
int RunGpuBench(CLI::App& app, int argc, char** argv, const std::function<void()>& bench);

}  // namespace muster::bench
