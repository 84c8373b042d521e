#include "controller/cli/signals.h"

#include <ctime>

namespace muster::cli {
namespace {

constexpr int kWake = SIGURG;  // ignored wherever it is not waited for

}  // namespace

SignalWait::SignalWait(std::initializer_list<int> signals) {
  sigemptyset(&set_);
  sigaddset(&set_, kWake);
  for (const int signal : signals) sigaddset(&set_, signal);
  pthread_sigmask(SIG_BLOCK, &set_, &before_);
}

SignalWait::~SignalWait() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<int> SignalWait::Wait(std::chrono::milliseconds timeout) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  timespec wait{};
  wait.tv_sec = seconds.count();
  wait.tv_nsec = std::chrono::nanoseconds(timeout - seconds).count();
  const int signal = sigtimedwait(&set_, nullptr, &wait);
  if (signal < 0 || signal == kWake) return std::nullopt;
  return signal;
}

void SignalWait::Wake() const {
  pthread_kill(thread_, kWake);
}

}  // namespace muster::cli
