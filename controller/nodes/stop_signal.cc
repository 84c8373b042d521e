#include "controller/nodes/stop_signal.h"

#include <poll.h>

namespace muster::nodes {

void StopSignal::Set() {
  set_.store(true);
  const uint64_t one = 1;
  // Can only fail when the counter is at its limit, and then it is readable.
  [[maybe_unused]] const ssize_t n = write(fd_.get(), &one, sizeof one);
}

bool StopSignal::WaitFor(std::chrono::milliseconds pause) const {
  pollfd poll_fd{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  poll(&poll_fd, 1, static_cast<int>(pause.count()));
  return is_set();
}

}  // namespace muster::nodes
