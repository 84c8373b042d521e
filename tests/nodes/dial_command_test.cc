#include "controller/nodes/dial_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "common/version.h"

// `sh -c SCRIPT` stands for ssh.

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string kMarker =
    "MUSTER-BRIDGE protocol=" + std::to_string(kProtocol) + " version=" + kVersion;

class DialCommandTest : public testing::Test {
 protected:
  absl::StatusOr<Connection> Dial(const std::string& script,
                                  milliseconds timeout = milliseconds(20'000)) {
    return DialCommand({"sh", "-c", "read n; head -n $n >/dev/null; " + script}, Options(timeout),
                       stop_);
  }
  static ReachOptions Options(milliseconds timeout = milliseconds(20'000)) {
    return {.timeout = timeout,
            .name = "n1",
            .programs = std::make_shared<WorkerPrograms>("/opt/no/musterd")};
  }
  std::string Error(const std::string& script) {
    const auto connection = Dial(script);
    EXPECT_FALSE(connection.ok());
    return connection.status().ToString();
  }
  static std::string ReadAll(int fd) {
    std::string text;
    char buffer[4096];
    pollfd poll_fd{.fd = fd, .events = POLLIN, .revents = 0};
    while (poll(&poll_fd, 1, 20'000) == 1) {
      const ssize_t n = read(fd, buffer, sizeof buffer);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  StopSignal stop_;
};

// A host that does not run the script that it was sent.
class GreedyHost : public DialCommandTest {
 protected:
  GreedyHost() {
    std::string folder = "/tmp/muster_greedy_XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    for (const char* file : {"musterd", "muster-shim"})
      std::ofstream(folder_ + "/" + file) << std::string(3 << 20, 'x');
    utsname info{};
    uname(&info);
    ask_ = "printf '\\nMUSTER-SEND file=musterd arch=" + std::string(info.machine) +
           " gzip=0 to=/x\\n'; ";
  }
  ~GreedyHost() override { std::filesystem::remove_all(folder_); }

  absl::Status Reach(const std::string& script, milliseconds push_limit) {
    ReachOptions options = Options();
    options.programs = std::make_shared<WorkerPrograms>(folder_ + "/musterd");
    options.push_limit = push_limit;
    return DialCommand({"sh", "-c", "read n; head -n $n >/dev/null; " + script}, options, stop_)
        .status();
  }

  std::string folder_;
  std::string ask_;
};

TEST_F(GreedyHost, WhoAsksForProgramsWithoutEndIsLeft) {
  const absl::Status status =
      Reach("while :; do " + ask_ + "read n; head -c $n >/dev/null; done", milliseconds(60'000));
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("asks for the worker's programs again and again"));
}

TEST_F(GreedyHost, WhoTakesABitNowAndThenIsLeft) {
  const absl::Status status =
      Reach(ask_ + "while :; do head -c 1000 >/dev/null; sleep 0.05; done", milliseconds(1'000));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_THAT(status.ToString(), HasSubstr("took too long for the worker: 1 s are its limit"));
}

TEST_F(DialCommandTest, NoiseIsSkippedAndNoByteAfterTheMarkerIsLost) {
  const auto connection =
      Dial("printf 'Welcome!\\nno newline here'; echo; echo '" + kMarker + "'; printf 'after\\0x'");
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(ReadAll(connection->fd.get()), std::string("after\0x", 7));
}

TEST_F(DialCommandTest, NoiseWithoutAnEndOfLineAndInManyPieces) {
  const std::string half = kMarker.substr(0, 9);
  const auto connection = Dial("seq 1 20000; printf 'prompt> '; printf '" + half +
                               "'; sleep 0.05; echo '" + kMarker.substr(9) + "'; echo rest");
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(ReadAll(connection->fd.get()), "rest\n");
}

TEST_F(DialCommandTest, BytesGoBothWays) {
  const auto connection = Dial("echo '" + kMarker + "'; read x; echo \"got $x\"");
  ASSERT_TRUE(connection.ok()) << connection.status();
  ASSERT_EQ(write(connection->fd.get(), "hello\n", 6), 6);
  EXPECT_EQ(ReadAll(connection->fd.get()), "got hello\n");
}

TEST_F(DialCommandTest, AMissingProgram) {
  const auto connection = DialCommand({"/no/such/ssh", "n1"}, Options(), stop_);
  EXPECT_EQ(connection.status().ToString(),
            "FAILED_PRECONDITION: start /no/such/ssh: No such file or directory");
}

TEST_F(DialCommandTest, TheLastWordsOfAProgramThatEnds) {
  EXPECT_EQ(Error("echo 'kex_exchange_identification: Connection closed' >&2; exit 255"),
            "UNAVAILABLE: sh exited with 255 before the worker answered: "
            "kex_exchange_identification: Connection closed");
  EXPECT_EQ(Error("kill -9 $$"),
            "UNAVAILABLE: sh was ended by signal 9 before the worker answered");
  EXPECT_EQ(Error("echo This account is closed; exit 1"),
            "UNAVAILABLE: sh exited with 1 before the worker answered; it printed: This account is "
            "closed");
}

TEST_F(DialCommandTest, ManyLinesOnStderrAreCutAndDoNotBlock) {
  const std::string error = Error("seq 1 100000 >&2; echo last >&2; exit 3");
  EXPECT_LT(error.size(), 1200);
  EXPECT_THAT(error, HasSubstr("100000 last"));
}

TEST_F(DialCommandTest, WhatNoOtherTryWillMend) {
  EXPECT_THAT(Error("echo 'u@n1: Permission denied (publickey).' >&2; exit 255"),
              testing::AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("ssh-copy-id")));
  EXPECT_THAT(Error("echo 'Host key verification failed.' >&2; exit 255"),
              testing::AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("known_hosts")));
  EXPECT_THAT(Error("echo 'ssh: Could not resolve hostname n1: Name or service not known' >&2; "
                    "exit 255"),
              testing::AllOf(HasSubstr("FAILED_PRECONDITION"), HasSubstr("correct the name")));
  EXPECT_THAT(Error("echo 'ssh: Could not resolve hostname n1: Temporary failure in name "
                    "resolution' >&2; exit 255"),
              HasSubstr("UNAVAILABLE"));
  EXPECT_THAT(Error("echo 'sh: head: not found' >&2; exit 127"), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(Error("echo 'muster: no folder on this host can take the worker' >&2; exit 3"),
              HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(Error("echo 'musterd: state folder x belongs to uid 3' >&2; exit 2"),
              HasSubstr("FAILED_PRECONDITION"));
}

TEST_F(DialCommandTest, AnotherVersion) {
  EXPECT_EQ(
      Error("echo 'MUSTER-BRIDGE protocol=999 version=9.8.7'; sleep 60"),
      "FAILED_PRECONDITION: musterd 9.8.7 there speaks protocol 999, this controller (muster " +
          std::string(kVersion) + ") speaks " + std::to_string(kProtocol) +
          ": install the same version on both");
}

TEST_F(DialCommandTest, ATerminalOnTheWay) {
  EXPECT_THAT(Error("printf '" + kMarker + "\\r\\n'; sleep 60"), HasSubstr("leave out -t"));
}

TEST_F(DialCommandTest, EndlessNoiseHasAnEnd) {
  EXPECT_THAT(Error("exec yes"), HasSubstr("no line of musterd bridge among them"));
}

TEST_F(DialCommandTest, AHostThatNeverAnswers) {
  const auto connection = Dial("echo banner; echo trying >&2; sleep 60", milliseconds(300));
  EXPECT_EQ(
      connection.status().ToString(),
      "DEADLINE_EXCEEDED: sh brought no answer of a worker within 300 ms: trying; it printed: "
      "banner");
}

TEST_F(DialCommandTest, StopEndsTheWait) {
  std::thread later([this] {
    std::this_thread::sleep_for(milliseconds(50));
    stop_.Set();
  });
  EXPECT_TRUE(absl::IsCancelled(Dial("sleep 60").status()));
  later.join();
}

// Its children too, and also when it takes no notice of TERM.
TEST_F(DialCommandTest, NothingIsLeftOfTheProgram) {
  std::string file = "/tmp/muster_dial_XXXXXX";
  close(mkstemp(file.data()));
  {
    const auto connection = Dial("trap '' TERM; sleep 1000 & echo $$ $! > " + file + "; echo '" +
                                 kMarker + "'; wait; sleep 1000");
    ASSERT_TRUE(connection.ok()) << connection.status();
  }
  std::ifstream in(file);
  pid_t leader = 0;
  pid_t child = 0;
  in >> leader >> child;
  std::filesystem::remove(file);
  ASSERT_GT(child, 1);
  EXPECT_NE(kill(leader, 0), 0) << "reaped";
  // Killed: gone soon, but for a zombie that waits for init.
  const auto gone = [&] {
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::getline(stat, state);
    return state.empty() || state.find(") Z") != std::string::npos ||
           state.find(") X") != std::string::npos;
  };
  for (int i = 0; i < 2000 && !gone(); ++i) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_TRUE(gone());
}

TEST_F(DialCommandTest, TheCarrierTellsHowItEnded) {
  const auto connection =
      Dial("echo '" + kMarker + "'; echo 'Connection to n1 closed by remote host.' >&2; exit 255");
  ASSERT_TRUE(connection.ok()) << connection.status();
  ReadAll(connection->fd.get());
  EXPECT_EQ(connection->carrier->LastWords(),
            "sh exited with 255: Connection to n1 closed by remote host.");
}

// A carrier that talks and talks on stderr while the connection is used.
TEST_F(DialCommandTest, UnreadErrorsNeverBlockTheConnection) {
  const auto connection =
      Dial("echo '" + kMarker + "'; seq 1 200000 >&2 2>/dev/null; echo through");
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ(ReadAll(connection->fd.get()), "through\n");
}

}  // namespace
}  // namespace muster::nodes
