#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "controller/nodes/link_factory.h"
#include "tests/nodes/fake_worker.h"
#include "tests/nodes/recorder.h"
#include "tests/nodes/relay.h"

namespace muster::nodes {
namespace {

using std::chrono::milliseconds;

class LinkTest : public testing::Test {
 protected:
  LinkTest() {
    options_.controller_id = "c1";
    options_.backoff_initial = milliseconds(10);
    options_.backoff_maximum = milliseconds(50);
    options_.connect_timeout = milliseconds(300);
  }

  std::unique_ptr<NodeLink> Link(uint32_t port) {
    v1::Host host;
    host.set_host("127.0.0.1");
    host.set_transport("direct");
    host.set_worker_port(port);
    auto link = MakeLinkFactory(options_)->Make(host, "", recorder_, recorder_);
    EXPECT_TRUE(link.ok()) << link.status();
    (*link)->Start();
    return *std::move(link);
  }
  static v1::AttachRequest Wish(uint64_t generation, size_t bytes = 0) {
    v1::AttachRequest request;
    request.mutable_desired()->set_generation(generation);
    request.mutable_desired()->set_stop_reason(std::string(bytes, 'x'));
    return request;
  }

  LinkOptions options_;
  Recorder recorder_;
};

TEST_F(LinkTest, ComesUpAndCarriesMessagesBothWays) {
  WorkerScript script;
  script.after_hello.emplace_back().mutable_observed()->set_generation(3);
  script.after_hello.emplace_back().mutable_probe_result()->set_probe_id(7);
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  EXPECT_EQ(link->Describe(), "direct 127.0.0.1:" + std::to_string(worker.port()));
  ASSERT_TRUE(recorder_.WaitFor("probe 7"));
  EXPECT_EQ(recorder_.Events(), (std::vector<std::string>{"up fake", "observed 3", "probe 7"}));
  link->Send(Wish(5));
  link->Send(Wish(6, 1 << 20));
  ASSERT_TRUE(worker.WaitForMessages(2));
  EXPECT_EQ(worker.Messages()[1].desired().generation(), 6u);
  EXPECT_EQ(worker.Messages()[1].desired().stop_reason().size(), size_t{1} << 20);
}

TEST_F(LinkTest, LogChunksGoToTheSinkAndAcksComeBack) {
  WorkerScript script;
  for (uint64_t i = 0; i < 20; ++i) {
    v1::LogChunk& chunk = *script.after_hello.emplace_back().mutable_log();
    chunk.mutable_id()->set_job_id("1");
    chunk.set_rank(2);
    chunk.set_stream(v1::STREAM_STDOUT);
    chunk.set_offset(i << 18);
    chunk.set_data(std::string(256 << 10, 'x'));
  }
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("log 262144", 20));
  // Of many acknowledgements the newest counts; some may have been left out.
  for (int i = 0; i < 1000; ++i) {
    const auto messages = worker.Messages();
    if (!messages.empty() && messages.back().log_ack().offset() == 20u << 18) break;
    std::this_thread::sleep_for(milliseconds(10));
  }
  ASSERT_FALSE(worker.Messages().empty());
  EXPECT_EQ(worker.Messages().back().log_ack().offset(), 20u << 18);
  EXPECT_EQ(worker.Messages().back().log_ack().rank(), 2u);
}

TEST_F(LinkTest, ReconnectsWhenTheWorkerComesBack) {
  auto worker = std::make_unique<FakeWorker>(WorkerScript{});
  const uint32_t port = worker->port();
  const auto link = Link(port);
  ASSERT_TRUE(recorder_.WaitFor("up"));
  worker.reset();
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  link->Send(Wish(1));  // dropped: the link is down
  worker = std::make_unique<FakeWorker>(WorkerScript{}, port);
  ASSERT_TRUE(recorder_.WaitFor("up", 2));
  link->Send(Wish(2));
  ASSERT_TRUE(worker->WaitForMessages(1));
  EXPECT_EQ(worker->Messages()[0].desired().generation(), 2u);
}

TEST_F(LinkTest, ARefusedPortSaysHowToStartAWorker) {
  uint32_t port = 0;
  { port = FakeWorker(WorkerScript{}).port(); }
  const auto link = Link(port);
  ASSERT_TRUE(recorder_.WaitFor("lost", 2)) << "keeps trying";
  const std::string place = "127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(recorder_.Last("lost"), "lost NOT_FOUND: " + place +
                                        ": connection refused: is musterd running there? start it "
                                        "with: musterd --listen " +
                                        place);
}

TEST_F(LinkTest, AHostThatAcceptsAndSaysNothingIsGivenUp) {
  WorkerScript script;
  script.say_hello = false;
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("no hello from a worker within 300 ms"), std::string::npos)
      << recorder_.Last("lost");
}

// A socket that accepts but is not gRPC at all, like a stopped process.
TEST_F(LinkTest, ADeadSocketIsGivenUp) {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener.get(), 4), 0);
  ASSERT_EQ(getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const auto link = Link(ntohs(address.sin_port));
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("no hello"), std::string::npos) << recorder_.Last("lost");
}

// Without keepalive an idle stream over a dead network stays "up" for ever.
TEST_F(LinkTest, ASilentPartitionIsNoticed) {
  FakeWorker worker(WorkerScript{});
  Relay relay(worker.port());
  const auto link = Link(relay.port());
  ASSERT_TRUE(recorder_.WaitFor("up"));
  relay.Freeze();
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("no sign of life"), std::string::npos)
      << recorder_.Last("lost");
}

TEST_F(LinkTest, AnotherProtocolIsExplainedAndNotTriedAtSpeed) {
  WorkerScript script;
  script.protocol = 99;
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("musterd 9.9 speaks protocol 99"), std::string::npos)
      << recorder_.Last("lost");
  std::this_thread::sleep_for(milliseconds(200));  // twenty pauses of the ordinary back-off
  EXPECT_EQ(worker.connections(), 1);
}

TEST_F(LinkTest, ARefusalOfTheWorkerIsNotTriedAtSpeed) {
  WorkerScript script;
  script.refuse = grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "protocol 1 is too old");
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("protocol 1 is too old"), std::string::npos);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(worker.connections(), 1);
}

TEST_F(LinkTest, AWorkerThatTakesNothingIsGivenUp) {
  options_.max_queued_bytes = 1 << 20;
  WorkerScript script;
  script.read = false;
  FakeWorker worker(script);
  const auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("up"));
  for (uint64_t i = 0; i < 100; ++i) link->Send(Wish(i, 200'000));
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("takes no messages"), std::string::npos)
      << recorder_.Last("lost");
}

TEST_F(LinkTest, CloseEndsEveryState) {
  // Up.
  FakeWorker worker(WorkerScript{});
  auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("up"));
  link->Close();
  EXPECT_EQ(recorder_.Last("lost"), "") << "nothing is told after Close";
  link->Close();
  // Waiting for a hello, for a long time.
  options_.connect_timeout = std::chrono::hours(1);
  WorkerScript silent;
  silent.say_hello = false;
  FakeWorker silent_worker(silent);
  link = Link(silent_worker.port());
  while (silent_worker.connections() == 0) std::this_thread::sleep_for(milliseconds(1));
  link->Close();
  // Waiting for the next try.
  options_.backoff_initial = options_.backoff_maximum = std::chrono::hours(1);
  uint32_t port = 0;
  { port = FakeWorker(WorkerScript{}).port(); }
  link = Link(port);
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  link->Close();
  // Never started.
  v1::Host host;
  host.set_host("127.0.0.1");
  auto idle = MakeLinkFactory(options_)->Make(host, "direct", recorder_, recorder_);
  (*idle)->Close();
}

TEST_F(LinkTest, AnAckAfterTheEndIsHarmless) {
  WorkerScript script;
  script.after_hello.emplace_back().mutable_log()->set_data("x");
  FakeWorker worker(script);
  auto link = Link(worker.port());
  ASSERT_TRUE(recorder_.WaitFor("log"));
  link.reset();
  recorder_.last_ack()(v1::LogAck());
}

class LocalLinkTest : public LinkTest {
 protected:
  LocalLinkTest() {
    std::string name = "/tmp/muster_nodes_test_XXXXXX";
    options_.state_parent = mkdtemp(name.data());
    options_.spawn_timeout = milliseconds(2000);
  }
  ~LocalLinkTest() override { std::filesystem::remove_all(options_.state_parent); }

  std::unique_ptr<NodeLink> LocalLink(const std::string& name) {
    v1::Host host;
    host.set_host(name);
    auto link = MakeLinkFactory(options_)->Make(host, "local", recorder_, recorder_);
    EXPECT_TRUE(link.ok()) << link.status();
    (*link)->Start();
    return *std::move(link);
  }
  // A stand-in for the musterd program.
  void Script(const std::string& text) {
    options_.musterd = options_.state_parent + "/musterd";
    FILE* file = fopen(options_.musterd.c_str(), "w");
    fputs(("#!/bin/sh\n" + text).c_str(), file);
    fclose(file);
    chmod(options_.musterd.c_str(), 0755);
  }
};

TEST_F(LocalLinkTest, ReachesADaemonByItsSocket) {
  const std::string folder = options_.state_parent + "/127.0.0.2";
  std::filesystem::create_directory(folder);
  FakeWorker worker(WorkerScript{}, 0, folder + "/musterd.sock");
  const auto link = LocalLink("127.0.0.2");
  EXPECT_EQ(link->Describe(), "local");
  EXPECT_TRUE(recorder_.WaitFor("up fake"));
}

TEST_F(LocalLinkTest, StartsADaemonWhenNoneRuns) {
  const std::string folder = options_.state_parent + "/127.0.0.3";
  std::filesystem::create_directory(folder);
  Script("echo \"$*\" > " + folder + "/started\n");
  const auto link = LocalLink("127.0.0.3");
  while (!std::filesystem::exists(folder + "/started")) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  // What the started program would do.
  FakeWorker worker(WorkerScript{}, 0, folder + "/musterd.sock");
  EXPECT_TRUE(recorder_.WaitFor("up fake"));
  FILE* file = fopen((folder + "/started").c_str(), "r");
  char line[500] = {};
  EXPECT_NE(fgets(line, sizeof line, file), nullptr);
  fclose(file);
  EXPECT_EQ(line, "--name 127.0.0.3 --state-dir " + folder + " --background --idle-exit 600\n");
}

TEST_F(LocalLinkTest, TellsWhyADaemonDidNotStart) {
  Script("echo 'musterd: no space' >&2; exit 4\n");
  const auto link = LocalLink("127.0.0.3");
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("exited with 4: musterd: no space"), std::string::npos)
      << recorder_.Last("lost");
}

TEST_F(LocalLinkTest, TellsThatTheProgramIsMissing) {
  options_.musterd = options_.state_parent + "/none/musterd";
  const auto link = LocalLink("127.0.0.3");
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("none/musterd: No such file or directory"),
            std::string::npos)
      << recorder_.Last("lost");
}

TEST_F(LocalLinkTest, ADaemonThatNeverListensIsGivenUp) {
  options_.spawn_timeout = milliseconds(100);
  Script("exit 0\n");
  const auto link = LocalLink("127.0.0.3");
  ASSERT_TRUE(recorder_.WaitFor("lost"));
  EXPECT_NE(recorder_.Last("lost").find("within 100 ms"), std::string::npos)
      << recorder_.Last("lost");
}

TEST_F(LocalLinkTest, CloseWhileADaemonStarts) {
  options_.spawn_timeout = std::chrono::hours(1);
  Script("sleep 0.2\n");
  const auto link = LocalLink("127.0.0.3");
  link->Close();
  EXPECT_TRUE(recorder_.Events().empty());
}

TEST_F(LocalLinkTest, OddHostNamesStayInsideTheStateFolder) {
  const std::string folder = options_.state_parent + "/__1";
  std::filesystem::create_directory(folder);
  FakeWorker worker(WorkerScript{}, 0, folder + "/musterd.sock");
  const auto link = LocalLink("::1");
  EXPECT_TRUE(recorder_.WaitFor("up fake"));
}

}  // namespace
}  // namespace muster::nodes
