#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>

#include "common/reactor.h"
#include "common/unique_fd.h"

namespace muster {

// Where the connections of a listening socket wait until their other side has said something.
// gRPC, TLS and HTTP clients all speak first, so whoever connects and stays silent costs a
// descriptor here for a while and nothing else; how many may wait, and for how long, is bounded.
// Reactor thread only.
class Lobby {
 public:
  struct Options {
    size_t places = 256;  // beyond: whoever has waited longest has to go
    std::chrono::milliseconds patience{10'000};
  };
  struct Handlers {
    // Asked as soon as a connection is there: OK, or why it is refused.
    std::function<absl::Status(int fd)> check;
    // Takes a connection that has said something: non-blocking, close-on-exec, nothing read yet.
    std::function<void(UniqueFd fd)> enter;
    // Why a connection was closed here.
    std::function<void(const absl::Status& why)> refused;
  };

  Lobby(Reactor& reactor, UniqueFd listener, Options options, Handlers handlers);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

 private:
  struct Guest {
    UniqueFd fd;
    Reactor::TimePoint since;
  };
  using Guests = std::list<Guest>;  // the one that has waited longest first

  void Accept();
  void Admit(UniqueFd fd);
  void OnSpoken(Guests::iterator guest);
  void Dismiss(Guests::iterator guest, const absl::Status& why);
  void DismissLate();

  Reactor& reactor_;
  const UniqueFd listener_;
  const Options options_;
  const Handlers handlers_;
  Guests guests_;
  Reactor::TimerId late_ = 0;   // 0: none is set
  Reactor::TimerId again_ = 0;  // while descriptors are short
};

// Whether one more line may be logged: `burst` in each `period`. The refusals of a flood must not
// become a flood of the log. Not thread-safe.
class LogLimit {
 public:
  LogLimit(size_t burst, std::chrono::seconds period) : burst_(burst), period_(period) {}

  // True: log it, and say that `*skipped` others were not.
  bool Allow(std::chrono::steady_clock::time_point now, size_t* skipped);

 private:
  const size_t burst_;
  const std::chrono::seconds period_;
  std::chrono::steady_clock::time_point begin_{};
  size_t used_ = 0;
  size_t skipped_ = 0;
};

}  // namespace muster
