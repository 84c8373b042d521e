// The daemon itself: hello, wishes, probes, locks, listeners.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/unique_fd.h"
#include "tests/worker/e2e_fixture.h"

namespace muster::testing {
namespace {

class DaemonE2e : public WorkerE2e {};

// A listening socket on 127.0.0.1 and its port.
std::pair<UniqueFd, uint16_t> Occupy() {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return {std::move(fd), ntohs(address.sin_port)};
}

TEST_F(DaemonE2e, HelloHasTheFacts) {
  const auto hello = client_->WaitHello(1s);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->protocol(), 1u);
  EXPECT_EQ(hello->node_name(), "node1");
  EXPECT_EQ(hello->boot_id().size(), 36u);
  EXPECT_GT(hello->net_ns(), 0u);
  EXPECT_GT(hello->cores(), 0u);
  EXPECT_GT(hello->memory_bytes(), 1u << 20);
  EXPECT_EQ(hello->state_dir(), state_dir());
  EXPECT_EQ(hello->pid(), static_cast<uint32_t>(daemon_->pid()));
  EXPECT_EQ(hello->uid(), getuid());
  struct stat info;
  ASSERT_EQ(stat(state_dir().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat((state_dir() + "/musterd.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(DaemonE2e, FakeDevices) {
  daemon_->Terminate();
  StartDaemon({"--fake-devices", "2"});
  const auto hello = client_->WaitHello(1s);
  ASSERT_EQ(hello->devices_size(), 2);
  EXPECT_EQ(hello->devices(1).index(), 1u);
  EXPECT_EQ(hello->devices(1).kind(), "fake");
}

TEST_F(DaemonE2e, ProtocolIsChecked) {
  Client client("unix:" + state_dir() + "/musterd.sock", "");
  v1::AttachRequest hello;
  hello.mutable_hello()->set_protocol(99);
  hello.mutable_hello()->set_controller_id("c");
  client.Send(hello);
  EXPECT_EQ(client.Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(DaemonE2e, ANewStreamReplacesTheOld) {
  Client second("unix:" + state_dir() + "/musterd.sock", controller_);
  ASSERT_TRUE(second.WaitHello(5s));
  EXPECT_EQ(client_->Finish().error_code(), grpc::StatusCode::ABORTED);
  second.Send(Prepare(Job("1"), {"true"}));
  EXPECT_TRUE(second.WaitFor(
      Job("1"), [](const auto& o) { return o.reached(); }, 5s));
  second.Send(Wish(Job("1"), 9, v1::GOAL_STOPPED, 0));
  EXPECT_TRUE(second.WaitFor(
      Job("1"), [](const auto& o) { return o.has_end(); }, 5s));
}

TEST_F(DaemonE2e, RepeatedWishesChangeNothing) {
  const v1::Desired prepare = Prepare(Job("2"), {"/bin/sh", "-c", "echo once; sleep 0.5"});
  client_->Send(prepare);
  client_->Send(prepare);
  ASSERT_TRUE(client_->WaitFor(
      Job("2"), [](const auto& o) { return o.reached(); }, 5s));
  for (int i = 0; i < 3; ++i) client_->Send(Wish(Job("2"), 2, v1::GOAL_RUNNING));
  WaitEnd(Job("2"));
  EXPECT_EQ(client_->WaitLog(0, v1::STREAM_STDOUT, 5s), "once\n");
  client_->Send(Wish(Job("2"), 1, v1::GOAL_PREPARED));
  const auto refused = client_->WaitFor(
      Job("2"), [](const auto& o) { return !o.refused().empty(); }, 5s);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refused(), "generation 1 is older than the accepted 2");
  EXPECT_TRUE(refused->has_end());
}

TEST_F(DaemonE2e, ForgottenAttemptsLeaveOnlyATombstone) {
  Launch(Job("3"), {"true"});
  WaitEnd(Job("3"));
  client_->Send(Wish(Job("3"), 5, v1::GOAL_FORGOTTEN));
  ASSERT_TRUE(client_->WaitFor(
      Job("3"), [](const auto& o) { return o.goal() == v1::GOAL_FORGOTTEN && o.reached(); }, 5s));
  EXPECT_FALSE(std::filesystem::exists(RankFile(Job("3"), 0, "stdout.log")));
  Restart();
  client_->Send(Prepare(Job("3"), {"true"}));
  const auto refused = client_->WaitFor(
      Job("3"), [](const auto& o) { return !o.refused().empty(); }, 5s);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->refused(), "generation 1 is older than the accepted 5");
}

TEST_F(DaemonE2e, UnknownAttemptsCanBeStoppedAndForgotten) {
  client_->Send(Wish(Job("4"), 1, v1::GOAL_STOPPED, 0));
  EXPECT_TRUE(client_->WaitFor(
      Job("4"), [](const auto& o) { return o.reached() && o.end().verified(); }, 5s));
  client_->Send(Wish(Job("5"), 1, v1::GOAL_FORGOTTEN));
  EXPECT_TRUE(client_->WaitFor(
      Job("5"), [](const auto& o) { return o.reached(); }, 5s));
  client_->Send(Wish(Job("6"), 1, v1::GOAL_RUNNING));
  const auto refused = client_->WaitFor(
      Job("6"), [](const auto& o) { return !o.refused().empty(); }, 5s);
  ASSERT_TRUE(refused);
  EXPECT_NE(refused->refused().find("is unknown here"), std::string::npos);
}

TEST_F(DaemonE2e, ProbeAnswers) {
  std::filesystem::create_directory(temp_.path() + "/w");
  std::filesystem::copy_file("/bin/true", temp_.path() + "/w/tool");
  v1::Probe probe;
  *probe.mutable_id() = Job("7");
  probe.set_working_dir(temp_.path() + "/w");
  probe.set_program("./tool");
  probe.add_readable("/bin/true");
  probe.add_readable("/no/such/file");
  const auto good = client_->AskProbe(probe);
  EXPECT_EQ(good.program_error(), "");
  EXPECT_EQ(good.program_path(), temp_.path() + "/w/./tool");
  EXPECT_EQ(good.working_dir_error(), "");
  EXPECT_GT(good.disk_free_bytes(), 0u);
  ASSERT_EQ(good.files_size(), 2);
  EXPECT_EQ(good.files(0).size(), std::filesystem::file_size("/bin/true"));
  EXPECT_EQ(good.files(1).error(), "/no/such/file: No such file or directory");

  probe.set_program("no-such-tool");
  probe.set_working_dir("/no/such");
  const auto bad = client_->AskProbe(probe);
  EXPECT_NE(bad.program_error().find("program no-such-tool in PATH="), std::string::npos);
  EXPECT_EQ(bad.working_dir_error(), "working folder /no/such: No such file or directory");

  std::filesystem::permissions(temp_.path() + "/w/tool", std::filesystem::perms::owner_read);
  probe.set_program(temp_.path() + "/w/tool");
  EXPECT_NE(client_->AskProbe(probe).program_error().find("chmod +x"), std::string::npos);
}

// The next message is read on gRPC's thread while the last one is dealt with on the reactor's.
TEST_F(DaemonE2e, ABurstOfMessagesArrivesWhole) {
  v1::AttachRequest request;
  request.mutable_log_ack()->mutable_id()->set_controller_id(controller_);
  for (int i = 0; i < 20'000; ++i) {
    request.mutable_log_ack()->mutable_id()->set_job_id(std::string(20 + i % 500, 'j'));
    client_->Send(request);
  }
  v1::Probe probe;
  probe.set_working_dir("/no/such");
  EXPECT_EQ(client_->AskProbe(probe).working_dir_error(),
            "working folder /no/such: No such file or directory");
}

TEST_F(DaemonE2e, ProbeHoldsThePortUntilTheStart) {
  v1::Probe probe;
  *probe.mutable_id() = Job("8");
  probe.set_want_port(true);
  probe.set_port_address("127.0.0.1");
  const auto first = client_->AskProbe(probe);
  ASSERT_GT(first.port(), 0u) << first.port_error();
  EXPECT_EQ(client_->AskProbe(probe).port(), first.port());  // idempotent

  // Nobody else gets it; the holder is named.
  v1::Probe other = probe;
  *other.mutable_id() = Job("9");
  other.set_port(first.port());
  const auto busy = client_->AskProbe(other);
  EXPECT_EQ(busy.port(), 0u);
  EXPECT_NE(busy.port_error().find("127.0.0.1:" + std::to_string(first.port()) +
                                   " is in use by pid " + std::to_string(daemon_->pid())),
            std::string::npos)
      << busy.port_error();

  Launch(Job("8"), {"/usr/bin/python3", "-c",
                    "import socket,sys; s=socket.socket(); s.bind(('127.0.0.1'," +
                        std::to_string(first.port()) + ")); s.listen(); print('bound')"});
  EXPECT_EQ(RankOf(WaitEnd(Job("8")), 0).exit().code(), 0);
}

TEST_F(DaemonE2e, ProbeNamesTheHolderOfABusyPort) {
  const auto [fd, port] = Occupy();
  v1::Probe probe;
  *probe.mutable_id() = Job("10");
  probe.set_want_port(true);
  probe.set_port_address("127.0.0.1");
  probe.set_port(port);
  const auto busy = client_->AskProbe(probe);
  EXPECT_NE(busy.port_error().find("is in use by pid " + std::to_string(getpid()) + " ("),
            std::string::npos)
      << busy.port_error();
  probe.set_port(0);
  probe.set_port_address("192.0.2.1");
  EXPECT_EQ(client_->AskProbe(probe).port_error(), "192.0.2.1 is not an address of this node");
}

TEST_F(DaemonE2e, SecondDaemonIsRefused) {
  Daemon second({"--state-dir", state_dir()});
  EXPECT_EQ(second.WaitExit(5s), 2);
}

TEST_F(DaemonE2e, BadListenAddressesAreRefused) {
  const auto [fd, port] = Occupy();
  for (const std::string& address :
       {std::string("0.0.0.0:66000"), std::string("localhost:1"), std::string("nonsense"),
        "127.0.0.1:" + std::to_string(port)}) {
    Daemon daemon({"--state-dir", temp_.path() + "/x", "--listen", address});
    EXPECT_EQ(daemon.WaitExit(5s), 2) << address;
  }
}

TEST_F(DaemonE2e, LoopbackTcpServesThisUser) {
  auto [fd, port] = Occupy();
  fd.reset();
  daemon_->Terminate();
  const std::string address = "127.0.0.1:" + std::to_string(port);
  StartDaemon({"--listen", address});
  Client tcp(address, "tcp");
  EXPECT_TRUE(tcp.WaitHello(5s));
}

TEST_F(DaemonE2e, EndsWhenIdle) {
  daemon_->Terminate();
  StartDaemon({"--idle-exit", "1"});
  Launch(Job("11"), {"sleep", "60"});
  client_.reset();
  EXPECT_FALSE(daemon_->WaitExit(2s));
  Connect();
  Stop(Job("11"), 1);
  client_.reset();
  EXPECT_EQ(daemon_->WaitExit(5s), 0);
}

TEST_F(DaemonE2e, BackgroundReturnsWhenItListens) {
  daemon_->Terminate();
  client_.reset();
  Daemon parent({"--state-dir", state_dir(), "--background", "--idle-exit", "1"});
  EXPECT_EQ(parent.WaitExit(5s), 0);
  Connect();
  const auto pid = static_cast<pid_t>(client_->WaitHello(1s)->pid());
  client_.reset();
  EXPECT_TRUE(WaitGone(pid, 5s));
  EXPECT_NE(ReadFile(state_dir() + "/musterd.log").find("idle"), std::string::npos);
}

}  // namespace
}  // namespace muster::testing
