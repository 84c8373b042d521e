#include "common/lobby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/unix_socket.h"

namespace muster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class LobbyTest : public testing::Test {
 protected:
  LobbyTest() {
    std::string name = "/tmp/muster-lobby-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    lobby_options_.patience = std::chrono::seconds(60);
  }
  ~LobbyTest() override {
    lobby_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Open() {
    auto listener = ListenUnix(folder_ + "/s");
    ASSERT_TRUE(listener.ok()) << listener.status();
    lobby_ = std::make_unique<Lobby>(reactor_, *std::move(listener), lobby_options_,
                                     Lobby::Handlers{[this](int) { return allowed_; },
                                                     [this](UniqueFd fd) {
                                                       char byte = 0;
                                                       EXPECT_EQ(read(fd.get(), &byte, 1),
                                                                 1);  // nothing was taken away
                                                       entered_.push_back(byte);
                                                       StopIfDone();
                                                     },
                                                     [this](const absl::Status& why) {
                                                       refused_.emplace_back(why.message());
                                                       StopIfDone();
                                                     }});
  }
  UniqueFd Connect(const char* word = "") {
    auto fd = ConnectUnix(folder_ + "/s");
    EXPECT_TRUE(fd.ok()) << fd.status();
    EXPECT_EQ(write(fd->get(), word, std::char_traits<char>::length(word)),
              static_cast<ssize_t>(std::char_traits<char>::length(word)));
    return *std::move(fd);
  }
  // Runs until so much has happened, ten seconds at most.
  void RunUntil(size_t events) {
    wanted_ = events;
    const auto limit = reactor_.After(std::chrono::seconds(10), [this] { reactor_.Stop(); });
    reactor_.Run();
    reactor_.Cancel(limit);
    EXPECT_EQ(entered_.size() + refused_.size(), events);
  }
  void StopIfDone() {
    if (entered_.size() + refused_.size() == wanted_) reactor_.Stop();
  }

  std::string folder_;
  Reactor reactor_{Clock::Real()};
  Lobby::Options lobby_options_;
  absl::Status allowed_;
  std::unique_ptr<Lobby> lobby_;
  std::vector<char> entered_;
  std::vector<std::string> refused_;
  size_t wanted_ = 0;
};

TEST_F(LobbyTest, WhoSpeaksEnters) {
  Open();
  const UniqueFd silent = Connect();
  const UniqueFd a = Connect("a");
  const UniqueFd b = Connect("b");
  RunUntil(2);
  EXPECT_THAT(entered_, ElementsAre('a', 'b'));
}

TEST_F(LobbyTest, WhoIsNotAllowedIsRefusedAtOnce) {
  allowed_ = absl::PermissionDeniedError("no");
  Open();
  const UniqueFd a = Connect("a");
  RunUntil(1);
  EXPECT_THAT(refused_, ElementsAre("no"));
}

TEST_F(LobbyTest, TheOldestSilentGuestMakesRoom) {
  lobby_options_.places = 3;
  Open();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Connect());
  silent.push_back(Connect("a"));
  RunUntil(99);
  EXPECT_THAT(entered_, ElementsAre('a'));
  ASSERT_EQ(refused_.size(), 98u);
  EXPECT_THAT(refused_.front(), HasSubstr("made room for a new one: 3 waited"));
}

TEST_F(LobbyTest, SilentGuestsGoInTime) {
  lobby_options_.patience = std::chrono::milliseconds(20);
  Open();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(Connect());
  RunUntil(3);
  EXPECT_THAT(refused_.front(), HasSubstr("said nothing"));
}

TEST_F(LobbyTest, WhoLeavesIsNoRefusal) {
  Open();
  Connect();
  Connect();
  const UniqueFd a = Connect("a");
  RunUntil(1);
  EXPECT_THAT(entered_, ElementsAre('a'));
}

TEST(LogLimit, CountsWhatItSkips) {
  LogLimit limit(2, std::chrono::seconds(10));
  std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
  size_t skipped = 0;
  EXPECT_TRUE(limit.Allow(now, &skipped));
  EXPECT_TRUE(limit.Allow(now, &skipped));
  EXPECT_FALSE(limit.Allow(now, &skipped));
  EXPECT_FALSE(limit.Allow(now, &skipped));
  now += std::chrono::seconds(10);
  EXPECT_TRUE(limit.Allow(now, &skipped));
  EXPECT_EQ(skipped, 2u);
}

TEST(ReactorWant, WritesAreWaitedForOnlyWhenWanted) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  const UniqueFd here(pair[0]);
  const UniqueFd there(pair[1]);
  Reactor reactor(Clock::Real());
  int calls = 0;
  reactor.Watch(here.get(), [&] {
    ++calls;
    reactor.Want(here.get(), false, false);
    reactor.After(std::chrono::milliseconds(1), [&] { reactor.Stop(); });
  });
  reactor.After(std::chrono::milliseconds(1), [&] {
    EXPECT_EQ(calls, 0);  // nothing to read
    reactor.Want(here.get(), false, true);
  });
  reactor.Run();
  EXPECT_EQ(calls, 1);  // though it stays writable
  reactor.Unwatch(here.get());
}

}  // namespace
}  // namespace muster
