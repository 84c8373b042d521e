#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/commtest/collective.h"

namespace muster::commtest {

enum class Backend { kAuto, kGloo, kNccl };

// Command line of muster-commtest; the defaults take a few seconds on any cluster.
struct Options {
  Backend backend = Backend::kAuto;  // NCCL where this process has a CUDA device, else Gloo
  std::vector<Collective> collectives = AllCollectives();
  Type type = Type::kFloat;
  int64_t min_bytes = 8;
  int64_t max_bytes = 16 << 20;
  int64_t step_factor = 8;
  int64_t iterations = 5;
  int64_t warmup = 1;
  bool pairs = true;
  int64_t pair_bytes = 4 << 20;
  int64_t pair_iterations = 20;
  std::chrono::milliseconds timeout{60'000};
  bool json = false;
  bool help = false;
  bool version = false;
};

// Throws ConfigError, which names the word, the reason and the nearest flag.
Options ParseOptions(const std::vector<std::string>& words);

// "8", "64K", "128M", "1G" (powers of 1024). Throws ConfigError; `flag` is for the message.
int64_t ParseSize(const std::string& flag, const std::string& text);

// The sizes of a sweep: from min, times the factor, up to max.
std::vector<int64_t> Sizes(const Options& options);

extern const char kHelp[];

}  // namespace muster::commtest
