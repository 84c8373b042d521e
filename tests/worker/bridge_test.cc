#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "common/bridge_marker.h"
#include "common/unique_fd.h"
#include "worker/daemon/options.h"
#include "worker/daemon/pump.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Pair {
  Pair() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) abort();
    ours.reset(fds[0]);
    theirs.reset(fds[1]);
  }
  UniqueFd ours;    // the test's end
  UniqueFd theirs;  // the pump's end
};

std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<size_t>(n));
  return text;
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

class PumpTest : public testing::Test {
 protected:
  PumpTest() { signal(SIGPIPE, SIG_IGN); }  // as in RunBridge
  void Start(milliseconds flush_limit = seconds(20)) {
    thread_ = std::thread([this, flush_limit] {
      result_ = Pump(caller_.theirs.get(), caller_.theirs.get(), daemon_.theirs.get(), flush_limit);
      caller_.theirs.reset();
      daemon_.theirs.reset();
    });
  }
  absl::Status Result() {
    thread_.join();
    return result_;
  }
  Pair caller_;
  Pair daemon_;
  absl::Status result_;
  std::thread thread_;
};

// More than all buffers on the way hold, both ways at once.
TEST_F(PumpTest, CarriesEveryByteBothWays) {
  std::string data(8 << 20, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7 + i / 251);
  Start();
  std::string down;
  std::string up;
  std::thread daemon_writes([&] { WriteAll(daemon_.ours.get(), data); });
  std::thread caller_writes([&] { WriteAll(caller_.ours.get(), data); });
  std::thread daemon_reads([&] {
    down.resize(data.size());
    for (size_t n = 0; n < down.size();) {
      n += static_cast<size_t>(read(daemon_.ours.get(), down.data() + n, down.size() - n));
    }
  });
  up.resize(data.size());
  for (size_t n = 0; n < up.size();) {
    n += static_cast<size_t>(read(caller_.ours.get(), up.data() + n, up.size() - n));
  }
  for (std::thread* t : {&daemon_writes, &caller_writes, &daemon_reads}) t->join();
  EXPECT_TRUE(up == data && down == data);
  caller_.ours.reset();
  EXPECT_TRUE(Result().ok());
}

TEST_F(PumpTest, TheCallersEndIsOk) {
  Start();
  shutdown(caller_.ours.get(), SHUT_WR);
  EXPECT_TRUE(Result().ok());
}

TEST_F(PumpTest, TheDaemonsLastBytesAreDelivered) {
  Start();
  WriteAll(daemon_.ours.get(), "last words");
  daemon_.ours.reset();
  EXPECT_EQ(ReadToEnd(caller_.ours.get()), "last words");
  EXPECT_TRUE(absl::IsUnavailable(Result()));
}

// The caller reads nothing, as after a cut: the pump must not stay.
TEST_F(PumpTest, AnEndedDaemonEndsThePumpAlsoWhenNobodyReads) {
  Start(milliseconds(50));
  std::thread writer([&] { WriteAll(daemon_.ours.get(), std::string(1 << 20, 'x')); });
  std::this_thread::sleep_for(milliseconds(100));
  shutdown(daemon_.ours.get(), SHUT_RDWR);
  writer.join();
  EXPECT_TRUE(absl::IsUnavailable(Result()));
}

TEST(BridgeOptionsTest, Words) {
  const auto options = ParseOptions({"bridge", "--name", "n1", "--idle-exit=7"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->bridge);
  EXPECT_EQ(options->name, "n1");
  EXPECT_EQ(options->idle_exit_s, 7u);
  EXPECT_FALSE(ParseOptions({"--name", "n1"})->bridge);
  EXPECT_EQ(ParseOptions({"bridge", "--listen", "x"}).status().message(),
            "--listen: not for musterd bridge, whose daemon runs in the background");
  EXPECT_EQ(ParseOptions({"brige"}).status().message(),
            "unknown argument brige; did you mean 'bridge'?");
}

TEST(BridgeMarkerTest, FoundInAnyCutOfTheStream) {
  const std::string noise = "motd\n\nMUSTER-BRIDGE is not it\nprompt> ";
  const std::string stream = noise + BridgeMarkerLine({.protocol = 3, .version = "1.2"}) + "PRI *";
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    BridgeMarkerScanner scanner;
    size_t used = *scanner.Feed(stream.substr(0, cut));
    if (!scanner.found()) {
      ASSERT_EQ(used, cut);
      used += *scanner.Feed(stream.substr(cut));
    }
    ASSERT_TRUE(scanner.found()) << cut;
    EXPECT_EQ(stream.substr(used), "PRI *") << cut;
    EXPECT_EQ(scanner.marker().protocol, 3u);
    EXPECT_EQ(scanner.marker().version, "1.2");
    EXPECT_EQ(scanner.NoiseTail(), noise + "\n");
  }
}

TEST(BridgeMarkerTest, WhatItRefuses) {
  for (const std::string& text : {std::string("MUSTER-BRIDGE protocol=x version=1\n"),
                                  std::string("MUSTER-BRIDGE protocol=1\n"),
                                  "MUSTER-BRIDGE protocol=1 version=" + std::string(6000, 'v'),
                                  std::string(300 << 10, 'n')}) {
    BridgeMarkerScanner scanner;
    EXPECT_TRUE(absl::IsFailedPrecondition(scanner.Feed(text).status())) << text.substr(0, 60);
  }
}

}  // namespace
}  // namespace muster::worker
