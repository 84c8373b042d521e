#include "controller/nodes/limits.h"

#include <poll.h>

#include <algorithm>
#include <array>

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;

// A library may have read what it waits for: then the descriptor says nothing.
constexpr milliseconds kLookAgain{250};

}  // namespace

milliseconds Limits::Left() const {
  const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
  return std::max(left, milliseconds(0));
}

Limits Limits::AtMost(milliseconds limit) const {
  if (Left() <= limit) return *this;
  return StartLimits(limit, *stop);
}

std::string Limits::Total() const {
  if (total.count() % 1'000 == 0) return std::to_string(total.count() / 1'000) + " s";
  return std::to_string(total.count()) + " ms";
}

Limits StartLimits(milliseconds total, const StopSignal& stop) {
  return {.deadline = std::chrono::steady_clock::now() + total, .total = total, .stop = &stop};
}

absl::Status WaitFd(int fd, short events, const Limits& limits) {
  std::array<pollfd, 2> fds = {pollfd{.fd = fd, .events = events, .revents = 0},
                               pollfd{.fd = limits.stop->fd(), .events = POLLIN, .revents = 0}};
  const milliseconds left = limits.Left();
  poll(fds.data(), fds.size(), static_cast<int>(std::min(left, kLookAgain).count()));
  if (limits.stop->is_set()) return absl::CancelledError("closed");
  if (left.count() == 0) return absl::DeadlineExceededError("no answer within " + limits.Total());
  return absl::OkStatus();
}

}  // namespace muster::nodes
