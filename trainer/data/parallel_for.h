#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace muster::data {

// Threads worth starting here.
inline int HardwareThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls work(part, begin, end) for `parts` nearly equal parts of 0 .. count, each on a thread of
// its own (the last on this one). Rethrows the first part's exception when all are done.
template <typename Work>
void ParallelFor(int64_t count, int parts, const Work& work) {
  parts = static_cast<int>(std::clamp<int64_t>(count, 1, std::max(parts, 1)));
  std::vector<std::exception_ptr> errors(static_cast<size_t>(parts));
  const auto run = [&](int part) {
    try {
      work(part, count * part / parts, count * (part + 1) / parts);
    } catch (...) {
      errors[static_cast<size_t>(part)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int part = 0; part + 1 < parts; ++part) threads.emplace_back(run, part);
  run(parts - 1);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace muster::data
