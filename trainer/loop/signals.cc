#include "trainer/loop/signals.h"

#include <signal.h>

#include <atomic>

namespace muster::loop {
namespace {

std::atomic<bool> requested = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void OnTerminate(int) {
  requested = true;
}

}  // namespace

void CatchTermination() {
  struct sigaction action {};
  action.sa_handler = OnTerminate;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, nullptr);
}

bool TerminationRequested() {
  return requested;
}

}  // namespace muster::loop
