#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::data {

// Threads worth starting here.
inline int HardwareThreads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls work(part, begin, end) for `parts` nearly equal parts of 0 .. count, each on a thread of
// its own (the last on this one, and those that the system has no thread for). Rethrows the first
// part's exception when all are done. `Thread`: joins in its destructor, throws std::system_error.
template <typename Thread = std::jthread, typename Work>
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
  {
    std::vector<Thread> threads;
    threads.reserve(static_cast<size_t>(parts));
    int part = 0;
    try {
      for (; part + 1 < parts; ++part) threads.emplace_back(run, part);
    } catch (const std::system_error&) {  // a limit on threads or on memory
    }
    for (; part < parts; ++part) run(part);
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace muster::data
