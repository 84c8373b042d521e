#include "worker/stage/tls_stream.h"

#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

namespace muster::stage {
namespace {

constexpr std::chrono::seconds kLong(60);

TEST(TlsStream, ASignalDoesNotEndAReadThatWaits) {
  signal(SIGPIPE, SIG_IGN);  // as the staging process does
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: calls end with EINTR, as after SIGCONT
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  UniqueFd theirs(sockets[0]);
  UniqueFd ours(sockets[1]);
  const std::string key(kTransferKeyBytes, 'k');
  absl::StatusOr<std::string> got;
  std::atomic<bool> reading{false};
  std::thread reader([&] {
    auto stream = TlsStream::Start(std::move(theirs), TlsStream::Side::kServer, key, kLong);
    reading = true;
    got = stream.ok() ? (*stream)->Read(5) : stream.status();
  });
  auto stream = TlsStream::Start(std::move(ours), TlsStream::Side::kClient, key, kLong);
  while (!reading) absl::SleepFor(absl::Milliseconds(1));
  for (int i = 0; i < 20; ++i) {
    pthread_kill(reader.native_handle(), SIGUSR1);
    absl::SleepFor(absl::Milliseconds(5));
  }
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_TRUE((*stream)->Write("hello").ok());
  reader.join();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(*got, "hello");
}

TEST(TlsStream, WhoSendsAByteNowAndThenIsCutOff) {
  signal(SIGPIPE, SIG_IGN);
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  UniqueFd slow(sockets[0]);
  std::string hello("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc", 9);  // of 16 KiB
  hello.resize(16'000, '\0');
  size_t sent = 0;
  std::thread writer([&] {
    while (sent < hello.size() && send(slow.get(), &hello[sent], 1, MSG_NOSIGNAL) == 1) {
      ++sent;
      absl::SleepFor(absl::Milliseconds(5));
    }
  });
  const auto stream =
      TlsStream::Start(UniqueFd(sockets[1]), TlsStream::Side::kServer,
                       std::string(kTransferKeyBytes, 'k'), std::chrono::milliseconds(200));
  writer.join();
  EXPECT_EQ(stream.status().message(), "handshake: it takes too long");
  EXPECT_LT(sent, hello.size());
}

TEST(TlsStream, SilenceEndsTheHandshake) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  const UniqueFd silent(sockets[0]);
  const auto stream =
      TlsStream::Start(UniqueFd(sockets[1]), TlsStream::Side::kClient,
                       std::string(kTransferKeyBytes, 'k'), std::chrono::milliseconds(50));
  EXPECT_EQ(stream.status().message(), "handshake: it takes too long");
}

}  // namespace
}  // namespace muster::stage
