#include "controller/nodes/ssh/agent.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "controller/nodes/ssh/agent_relay.h"

namespace muster::nodes::ssh {
namespace {

using std::chrono::milliseconds;

TEST(AgentTest, ListsOfKeysComeBackAsTheyWere) {
  const std::vector<AgentKey> keys = {{std::string("\0\0\0\3abcX", 8), "work"}, {"", ""}};
  const auto again = ParseIdentities(FormatIdentities(keys));
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_EQ(again->size(), 2);
  EXPECT_EQ((*again)[0].blob, keys[0].blob);
  EXPECT_EQ((*again)[0].comment, "work");
  EXPECT_EQ((*again)[0].Type(), "abc");
  EXPECT_EQ((*again)[1].Type(), "");
}

TEST(AgentTest, AnythingElseIsNoList) {
  const std::string good = FormatIdentities({{"blob", "comment"}});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(ParseIdentities(good.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseIdentities(std::string(1, kAgentFailure)).ok());
  EXPECT_FALSE(ParseIdentities(std::string(1, kIdentitiesAnswer) + "\xff\xff\xff\xff").ok());
}

// An agent that takes connections and says nothing, as one that waits for a person.
class SilentAgent {
 public:
  SilentAgent() : listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof address.sun_path - 1);
    bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    listen(listener_.get(), 4);
  }
  ~SilentAgent() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }
  void TakeOne() const { close(accept(listener_.get(), nullptr, nullptr)); }

 private:
  const std::string path_ = "/tmp/muster_agent_" + std::to_string(getpid());
  UniqueFd listener_;
};

TEST(AgentTest, AnAgentThatSaysNothing) {
  const SilentAgent silent;
  StopSignal stop;
  auto agent = Agent::Connect(silent.path(), StartLimits(std::chrono::minutes(1), stop));
  ASSERT_TRUE(agent.ok()) << agent.status();
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(agent->Identities(StartLimits(milliseconds(50), stop)).status()));

  // libssh asks it to sign: it hears the end as soon as the relay goes, and so does the relay.
  auto relay = AgentRelay::Start(*std::move(agent), StartLimits(std::chrono::hours(1), stop));
  ASSERT_TRUE(relay.ok()) << relay.status();
  (*relay)->Offer({"blob", "offered"});
  const UniqueFd socket = (*relay)->TakeSocket();
  const Limits limits = StartLimits(std::chrono::minutes(1), stop);
  ASSERT_TRUE(SendMessage(socket.get(), {&kRequestIdentities, 1}, limits).ok());
  const auto answer = ReceiveMessage(socket.get(), limits);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*answer, FormatIdentities({{"blob", "offered"}}));
  ASSERT_TRUE(SendMessage(socket.get(), {&kSignRequest, 1}, limits).ok());
  std::this_thread::sleep_for(milliseconds(20));
  relay->reset();
  EXPECT_TRUE(absl::IsUnavailable(ReceiveMessage(socket.get(), limits).status()));
}

TEST(AgentTest, AFullQueueIsWaitedFor) {
  const SilentAgent silent;
  StopSignal stop;
  std::vector<Agent> waiting;
  while (true) {
    auto agent = Agent::Connect(silent.path(), StartLimits(milliseconds(1), stop));
    if (!agent.ok()) {
      EXPECT_TRUE(absl::IsDeadlineExceeded(agent.status())) << agent.status();
      break;
    }
    waiting.push_back(*std::move(agent));
    ASSERT_LT(waiting.size(), 100u);
  }
  std::thread later([&silent] {
    std::this_thread::sleep_for(milliseconds(30));
    silent.TakeOne();
  });
  const auto agent = Agent::Connect(silent.path(), StartLimits(std::chrono::minutes(1), stop));
  EXPECT_TRUE(agent.ok()) << agent.status();
  later.join();
  stop.Set();
  EXPECT_TRUE(absl::IsCancelled(
      Agent::Connect(silent.path(), StartLimits(std::chrono::minutes(1), stop)).status()));
}

TEST(AgentTest, NoAgentThere) {
  StopSignal stop;
  const Limits limits = StartLimits(std::chrono::minutes(1), stop);
  EXPECT_FALSE(Agent::Connect("/no/such/agent", limits).ok());
  EXPECT_FALSE(Agent::Connect(std::string(200, 'x'), limits).ok());
}

}  // namespace
}  // namespace muster::nodes::ssh
