#include "trainer/loop/events.h"

#include <poll.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cerrno>

#include "common/clock.h"

namespace muster::loop {
namespace {

// A pipe that is ready takes this much at once; longer lines would be torn.
constexpr size_t kLongestLine = 4096;

bool Ready(int fd) {
  pollfd poller{fd, POLLOUT, 0};
  return poll(&poller, 1, 0) == 1 && (poller.revents & POLLOUT) != 0;
}

}  // namespace

void EventWriter::Write(std::string_view event, Fields fields) {
  if (fd_ < 0) return;
  nlohmann::ordered_json json;
  json["event"] = event;
  json["rank"] = rank_;
  json["time"] = static_cast<double>(Clock::Real().RealtimeNs()) * 1e-9;
  for (const auto& [name, value] : fields) {
    std::visit([&json, key = std::string(name)](const auto& v) { json[key] = v; }, value);
  }
  const std::string line =
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (line.size() > kLongestLine || !Ready(fd_)) {
    ++dropped_;
    return;
  }
  const ssize_t n = write(fd_, line.data(), line.size());
  if (n < 0 && errno != EINTR && errno != EAGAIN) fd_ = -1;
  if (n < 0) ++dropped_;
}

}  // namespace muster::loop
