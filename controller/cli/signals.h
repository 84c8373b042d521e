#pragma once

#include <csignal>

#include <chrono>
#include <initializer_list>
#include <optional>

namespace muster::cli {

// Signals as values instead of handlers: blocked while this lives, in this thread and in those
// started from now on, and taken one by one with Wait. Make it before the first gRPC call, since
// gRPC starts threads. One thread, but for Wake.
class SignalWait {
 public:
  SignalWait(std::initializer_list<int> signals);
  ~SignalWait();
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  // The next signal, or nothing after `timeout` or a Wake.
  std::optional<int> Wait(std::chrono::milliseconds timeout);
  // Ends the Wait that runs, or the next one. Any thread.
  void Wake() const;

 private:
  const pthread_t thread_ = pthread_self();
  sigset_t set_;
  sigset_t before_;
};

}  // namespace muster::cli
