#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "common/unique_fd.h"

namespace muster::nodes {

// Stands between a link and one worker on the loopback and, once frozen, lets nothing through and
// closes nothing: what a network partition or a stopped machine looks like.
class Relay {
 public:
  explicit Relay(uint32_t worker_port) : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof address;
    if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        listen(listener_.get(), 4) != 0 ||
        getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      abort();
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, worker_port] { Run(worker_port); });
  }
  ~Relay() {
    stop_ = true;
    thread_.join();
  }

  uint32_t port() const { return port_; }
  void Freeze() { frozen_ = true; }

 private:
  static sockaddr_in Loopback(uint32_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  bool Readable(int fd) const {
    pollfd poll_fd{.fd = fd, .events = POLLIN, .revents = 0};
    return poll(&poll_fd, 1, 5) > 0;
  }
  // False when one side has closed.
  static bool Copy(int from, int to) {
    char buffer[16 << 10];
    const ssize_t n = read(from, buffer, sizeof buffer);
    return n > 0 && write(to, buffer, static_cast<size_t>(n)) == n;
  }
  void Run(uint32_t worker_port) {
    while (!stop_ && !Readable(listener_.get())) {
    }
    if (stop_) return;
    const UniqueFd near(accept(listener_.get(), nullptr, nullptr));
    const UniqueFd far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = Loopback(worker_port);
    if (connect(far.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
    while (!stop_) {
      if (frozen_) {
        usleep(1000);
        continue;
      }
      if (Readable(near.get()) && !Copy(near.get(), far.get())) return;
      if (Readable(far.get()) && !Copy(far.get(), near.get())) return;
    }
  }

  UniqueFd listener_;
  uint32_t port_ = 0;
  std::atomic<bool> frozen_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace muster::nodes
