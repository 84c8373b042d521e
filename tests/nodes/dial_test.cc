#include "controller/nodes/dial.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace muster::nodes {
namespace {

constexpr uid_t kNobody = 65534;
constexpr auto kTimeout = std::chrono::seconds(5);

// Listens on a free port of 127.0.0.1; 0 on failure.
uint32_t Listen(UniqueFd& fd) {
  fd.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  if (bind(fd.get(), raw, size) != 0 || listen(fd.get(), 4) != 0) return 0;
  return getsockname(fd.get(), raw, &size) == 0 ? ntohs(address.sin_port) : 0;
}

TEST(DialOwnTcp, ReachesAListenerOfThisUser) {
  UniqueFd listener;
  const uint32_t port = Listen(listener);
  ASSERT_NE(port, 0u);
  StopSignal stop;
  const auto fd = DialOwnTcp("127.0.0.1", port, kTimeout, stop);
  EXPECT_TRUE(fd.ok()) << fd.status();
}

TEST(DialOwnTcp, RefusesAListenerOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    UniqueFd listener;
    uint32_t port = 0;
    if (setuid(kNobody) == 0) port = Listen(listener);
    if (write(pipe_fds[1], &port, sizeof port) != sizeof port) _exit(1);
    pause();
    _exit(0);
  }
  uint32_t port = 0;
  ASSERT_EQ(read(pipe_fds[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  EXPECT_NE(port, 0u);
  StopSignal stop;
  const auto fd = DialOwnTcp("127.0.0.1", port, kTimeout, stop);
  EXPECT_EQ(fd.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(fd.status().message().find("uid 65534 listens there"), std::string::npos)
      << fd.status();
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

}  // namespace
}  // namespace muster::nodes
