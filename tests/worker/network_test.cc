#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "worker/facts/mesh.h"
#include "worker/facts/network.h"
#include "worker/facts/port.h"
#include "worker/facts/route.h"

// Nodes as threads on loopback addresses.

namespace muster::facts {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

steady_clock::time_point In(int64_t ms) {
  return steady_clock::now() + milliseconds(ms);
}

uint32_t FreePort() {
  return HoldPort("127.0.0.1", {}, ProcReader::Real()).port;
}

std::string AddressOf(uint32_t node) {
  return "127.0.7." + std::to_string(node + 1);
}

// A node that connects to all others and expects all of them.
MeshTask Task(uint32_t self, uint32_t nodes, const std::vector<uint32_t>& ports) {
  MeshTask task;
  task.token = "0123456789abcdef";
  task.self = self;
  task.listen = *ParseAddress(AddressOf(self));
  task.ports = ports;
  for (uint32_t i = 0; i < nodes; ++i) {
    if (i == self) continue;
    task.connect.push_back({i, *ParseAddress(AddressOf(i))});
    task.expect.push_back(i);
  }
  return task;
}

std::vector<v1::NetworkResult> RunAll(const std::vector<MeshTask>& tasks, int64_t limit_ms) {
  std::vector<v1::NetworkResult> results(tasks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tasks.size(); ++i) {
    threads.emplace_back(
        [&, i] { RunMesh(tasks[i], ProcReader::Real(), In(limit_ms), results[i]); });
  }
  for (auto& thread : threads) thread.join();
  return results;
}

TEST(Mesh, AllReachAll) {
  const uint32_t port = FreePort();
  std::vector<MeshTask> tasks;
  for (uint32_t i = 0; i < 5; ++i) tasks.push_back(Task(i, 5, {port, port + 1}));
  const auto results = RunAll(tasks, 20'000);
  for (uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(results[i].port(), port);
    EXPECT_THAT(results[i].listen_error(), IsEmpty());
    ASSERT_EQ(results[i].connected_size(), 4);
    for (const auto& peer : results[i].connected()) {
      EXPECT_THAT(peer.error(), IsEmpty());
      EXPECT_EQ(peer.address(), AddressOf(peer.node()));
    }
    EXPECT_EQ(results[i].heard_size(), 4);
  }
}

TEST(Mesh, ALateNodeIsWaitedForAndADeadOneIsNot) {
  const uint32_t port = FreePort();
  std::vector<MeshTask> tasks = {Task(0, 3, {port}), Task(1, 3, {port})};  // node 2 never comes
  const auto results = RunAll(tasks, 400);
  EXPECT_THAT(results[0].heard(), ElementsAre(1));
  ASSERT_EQ(results[0].connected_size(), 2);
  EXPECT_THAT(results[0].connected(0).error(), IsEmpty());
  EXPECT_EQ(results[0].connected(1).error(), "connection refused");

  std::vector<v1::NetworkResult> late(2);
  std::thread first([&] { RunMesh(Task(0, 2, {port}), ProcReader::Real(), In(20'000), late[0]); });
  std::this_thread::sleep_for(milliseconds(200));
  RunMesh(Task(1, 2, {port}), ProcReader::Real(), In(20'000), late[1]);
  first.join();
  EXPECT_THAT(late[0].connected(0).error(), IsEmpty());
  EXPECT_THAT(late[1].connected(0).error(), IsEmpty());
}

TEST(Mesh, AnotherPreflightsNodeIsNotOurs) {
  const uint32_t port = FreePort();
  std::vector<MeshTask> tasks = {Task(0, 2, {port}), Task(1, 2, {port})};
  tasks[1].token = "fedcba9876543210";
  const auto results = RunAll(tasks, 300);
  EXPECT_EQ(results[0].connected(0).error(), "another program answers there");
  EXPECT_THAT(results[0].heard(), IsEmpty());
}

// A listener that lets all connect and never says a word, on every address of the node.
UniqueFd SilentListener(uint32_t port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  EXPECT_EQ(listen(fd.get(), 4096), 0);
  return fd;
}

TEST(Mesh, SilentPeersDoNotKeepOthersFromBeingTried) {
  const uint32_t port = FreePort();
  const UniqueFd silent = SilentListener(port);
  const uint32_t open = FreePort();
  constexpr uint32_t kSilent = 205;  // more than are tried at once
  std::vector<MeshTask> tasks = {Task(0, 1, {port}), Task(1, 1, {open})};
  for (uint32_t i = 0; i < kSilent; ++i)
    tasks[0].connect.push_back({i + 2, *ParseAddress("127.0.8." + std::to_string(i + 1))});
  tasks[0].connect.push_back({1000, *ParseAddress("127.0.7.2")});
  tasks[0].ports = {port, open};
  tasks[1].self = 1000;
  tasks[1].expect = {0};
  const auto results = RunAll(tasks, 4'000);
  ASSERT_EQ(results[0].connected_size(), static_cast<int>(kSilent) + 1);
  EXPECT_EQ(results[0].connected(0).node(), 2u);
  EXPECT_EQ(results[0].connected(0).error(), "accepted, but no answer");
  EXPECT_EQ(results[0].connected(kSilent).node(), 1000u);
  EXPECT_THAT(results[0].connected(kSilent).error(), IsEmpty());
}

TEST(Mesh, APeerThatWasNotTriedIsNotSaidToRefuse) {
  MeshTask task = Task(0, 2, {FreePort()});
  v1::NetworkResult result;
  RunMesh(task, ProcReader::Real(), In(-1), result);
  EXPECT_EQ(result.connected(0).error(), "not tried in time");
}

TEST(Mesh, ATakenPortNamesItsHolderAndTheNextIsTaken) {
  const HeldPort taken = HoldPort("127.0.7.1", {}, ProcReader::Real());
  MeshTask task = Task(0, 1, {taken.port});
  v1::NetworkResult result;
  RunMesh(task, ProcReader::Real(), In(300), result);
  EXPECT_THAT(result.listen_error(), HasSubstr(":" + std::to_string(taken.port) +
                                               " is in use by pid " + std::to_string(getpid())));
  task.ports.push_back(FreePort());
  result.Clear();
  RunMesh(task, ProcReader::Real(), In(300), result);
  EXPECT_THAT(result.listen_error(), IsEmpty());
  EXPECT_EQ(result.port(), task.ports[1]);
}

TEST(Mesh, AnAddressOfAnotherNode) {
  MeshTask task = Task(0, 1, {FreePort()});
  task.listen = *ParseAddress("198.51.100.7");
  v1::NetworkResult result;
  RunMesh(task, ProcReader::Real(), In(300), result);
  EXPECT_EQ(result.listen_error(), "198.51.100.7 is not an address of this node");
}

TEST(Route, InterfaceOnTheWay) {
  const Route route = RouteTo(*ParseAddress("127.0.0.1"));
  EXPECT_EQ(route.iface, "lo");
  EXPECT_THAT(route.error, IsEmpty());
  EXPECT_EQ(RouteTo(*ParseAddress("127.3.2.1")).iface, "lo");
  EXPECT_EQ(InterfaceError("lo"), "");
  EXPECT_THAT(InterfaceError("none7"), HasSubstr("there is no interface none7 (interfaces with an "
                                                 "address: "));
}

TEST(Route, NamesInAnHostsFile) {
  const std::string hosts =
      "127.0.0.1 localhost\n# 10.0.0.9 n1\n127.0.1.1 n1.example.net n1\n10.0.0.2\tN2 # n3\n::1 "
      "six\n";
  EXPECT_EQ(FindInHosts(hosts, "n1")->Text(), "127.0.1.1");
  EXPECT_TRUE(FindInHosts(hosts, "n1")->IsLoopback());
  EXPECT_EQ(FindInHosts(hosts, "n2")->Text(), "10.0.0.2");
  EXPECT_FALSE(FindInHosts(hosts, "n3"));
  EXPECT_TRUE(FindInHosts(hosts, "six")->IsLoopback());
  EXPECT_FALSE(ParseAddress("n1"));
  EXPECT_EQ(ParseAddress("[fd00::2]")->Text(), "fd00::2");
}

TEST(Network, ANameThatNobodyKnows) {
  v1::NetworkProbe probe;
  probe.set_token("0123456789abcdef");
  probe.set_listen_address("no-such-host.invalid");
  probe.add_ports(FreePort());
  probe.set_iface("none7");
  v1::NetworkPeer& peer = *probe.add_connect();
  peer.set_node(1);
  peer.set_address("neither.invalid");
  const auto result =
      AnswerNetwork(probe, {{"PATH", "/usr/bin:/bin"}}, ProcReader::Real(), In(3'000));
  EXPECT_THAT(result.listen_error(), HasSubstr("can't resolve its own data address"));
  EXPECT_THAT(result.route_error(), HasSubstr("there is no interface none7"));
  ASSERT_EQ(result.connected_size(), 1);
  EXPECT_EQ(result.connected(0).error(), "can't resolve 'neither.invalid'");
}

TEST(HoldPort, FreePortsAreBelowTheOutgoingRange) {
  const HeldPort held = HoldPort("127.0.0.1", {}, ProcReader::Real());
  ASSERT_TRUE(held.socket) << held.error;
  EXPECT_GE(held.port, 20000u);
  EXPECT_LE(held.port, 32000u);
  const HeldPort again = HoldPort("127.0.0.1", {.port = held.port}, ProcReader::Real());
  EXPECT_FALSE(again.socket);
  EXPECT_THAT(again.error, HasSubstr("is in use by pid " + std::to_string(getpid()) + " ("));
  EXPECT_EQ(HoldPort("127.0.0.1", {.port = 70000}, ProcReader::Real()).error,
            "70000 is not a TCP port (1 to 65535)");
  EXPECT_TRUE(HoldPort("::1", {}, ProcReader::Real()).socket);
}

TEST(HoldPort, OfARange) {
  const HeldPort first = HoldPort("127.0.0.1", {}, ProcReader::Real());
  const PortWish one = {.first = first.port, .last = first.port};
  const HeldPort none = HoldPort("127.0.0.1", one, ProcReader::Real());
  EXPECT_FALSE(none.socket);
  EXPECT_THAT(none.error, HasSubstr(std::to_string(first.port) + " is in use by pid"));
  const PortWish some = {.first = first.port, .last = first.port + 50};
  const HeldPort other = HoldPort("127.0.0.1", some, ProcReader::Real());
  ASSERT_TRUE(other.socket) << other.error;
  EXPECT_GT(other.port, first.port);
  EXPECT_LE(other.port, first.port + 50);
}

}  // namespace
}  // namespace muster::facts
