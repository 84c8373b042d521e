#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace muster::bench {

// What a program that has ended took.
struct ChildUsage {
  double wall_seconds = 0;
  double cpu_seconds = 0;  // user and system, all threads and processes it waited for
  double peak_mib = 0;     // of its memory (VmHWM)
};

// Runs `words` to its end, with stdout and stderr to /dev/null, and stdin from there or, with
// `feed`, from what that writes to a descriptor. Throws std::runtime_error unless it exits with 0.
ChildUsage RunChild(const std::vector<std::string>& words,
                    const std::function<void(int fd)>& feed = nullptr);

}  // namespace muster::bench
