#pragma once

#include <absl/status/status.h>

#include <chrono>

namespace muster::worker {

// Carries bytes `in` -> `socket` -> `out` until one of them ends; all are made non-blocking and
// stay the caller's. OK: `in` has ended, its owner has gone. Unavailable: the socket's other side
// has ended; what it said last has been written, as far as `out` took it within `flush_limit`.
// Holds at most 64 KiB each way: who does not read is not read from. One thread.
absl::Status Pump(int in, int out, int socket, std::chrono::milliseconds flush_limit);

}  // namespace muster::worker
