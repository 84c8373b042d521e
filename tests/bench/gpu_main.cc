#include "tests/bench/gpu_main.h"

#include <cuda_runtime_api.h>

#include <cstdio>

namespace muster::bench {

int RunGpuBench(CLI::App& app, int argc, char** argv, const std::function<void()>& bench) {
  CLI11_PARSE(app, argc, argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fputs("no CUDA device: skipped\n", stderr);
    return 77;
  }
  try {
    bench();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace muster::bench
