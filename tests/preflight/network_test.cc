#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "controller/preflight/check_functions.h"
#include "controller/preflight/network_plan.h"
#include "controller/preflight/reach.h"

// Who is asked about whom, and who is to blame.

namespace muster::preflight {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Answers of `count` nodes among which the pairs of `cut` (from, to) fail.
Nodes Answers(uint32_t count, const std::set<std::pair<uint32_t, uint32_t>>& cut) {
  Nodes nodes;
  for (uint32_t i = 0; i < count; ++i) {
    NodeFacts& node = nodes.emplace_back();
    node.host = "n" + std::to_string(i);
    node.data_addr = "10.0.0." + std::to_string(i);
    v1::NetworkResult& network = *node.probe.mutable_network();
    for (const uint32_t j : PeersOf(i, count)) {
      v1::PeerResult& peer = *network.add_connected();
      peer.set_node(j);
      peer.set_address("10.0.0." + std::to_string(j));
      if (cut.contains({i, j})) peer.set_error("no answer: packets are dropped on the way");
    }
  }
  return nodes;
}

std::set<std::pair<uint32_t, uint32_t>> AllOfNode(uint32_t node, uint32_t count, bool in,
                                                  bool out) {
  std::set<std::pair<uint32_t, uint32_t>> cut;
  for (uint32_t i = 0; i < count; ++i) {
    if (in) cut.emplace(i, node);
    if (out) cut.emplace(node, i);
  }
  return cut;
}

Findings Check(const Nodes& nodes) {
  Options options;
  options.ports = "20001, 20002";
  Findings out;
  CheckNetwork(nodes, options, out);
  return out;
}

auto Names(const std::string& host, const std::string& value) {
  return AllOf(Field(&Finding::host, host), Field(&Finding::value, HasSubstr(value)));
}

TEST(Peers, AllPairsOfFewAndStridesOfMany) {
  EXPECT_THAT(PeersOf(1, 4), ElementsAre(0, 2, 3));
  EXPECT_THAT(PeersOf(0, 1), IsEmpty());
  EXPECT_THAT(PeersOf(0, 300), SizeIs(299));
  EXPECT_THAT(PeersOf(298, 300), UnorderedElementsAre(0, 299, 2, 6, 14, 30, 62, 126, 254));
  // Everybody is asked about by somebody, and the head by all.
  std::set<uint32_t> seen;
  for (uint32_t i = 1; i < 300; ++i) {
    for (const uint32_t j : PeersOf(i, 300)) seen.insert(j);
  }
  EXPECT_THAT(seen, SizeIs(300));
}

TEST(ProbePorts, OfTheRangeOrBelowTheOutgoingOnes) {
  v1::JobSpec spec;
  const auto any = ProbePorts(spec, 1);
  ASSERT_THAT(any, SizeIs(3));
  for (const uint32_t port : any) EXPECT_TRUE(port >= 20000 && port <= 32000) << port;
  EXPECT_NE(any, ProbePorts(spec, 2));
  spec.mutable_port_range()->set_first(29500);
  spec.mutable_port_range()->set_last(29501);
  EXPECT_THAT(ProbePorts(spec, 7), UnorderedElementsAre(29500, 29501));
}

TEST(NetworkProbes, AbsentNodesTakeNoPart) {
  v1::JobSpec spec;
  v1::Plan plan;
  for (const char* address : {"10.0.0.1", "10.0.0.2", "10.0.0.3"})
    plan.add_nodes()->set_data_addr(address);
  plan.mutable_nodes(2)->mutable_host()->set_iface("ib0");
  const auto probes = NetworkProbes(spec, plan, {false, true, false}, "0123456789abcdef", 1);
  ASSERT_EQ(probes[0].connect_size(), 1);
  EXPECT_EQ(probes[0].connect(0).node(), 2u);
  EXPECT_EQ(probes[0].connect(0).address(), "10.0.0.3");
  EXPECT_THAT(probes[0].expect(), ElementsAre(2));
  EXPECT_EQ(probes[0].route_to(), "10.0.0.2");
  EXPECT_EQ(probes[2].route_to(), "10.0.0.1");
  EXPECT_EQ(probes[2].iface(), "ib0");
  EXPECT_THAT(probes[1].connect(), IsEmpty());
}

TEST(CheckNetwork, AllWell) {
  EXPECT_THAT(Check(Answers(5, {})), IsEmpty());
  EXPECT_THAT(Check(Answers(40, {})), IsEmpty());
}

TEST(CheckNetwork, OnePairBothWaysIsOneFinding) {
  const auto findings = Check(Answers(5, {{2, 4}, {4, 2}}));
  EXPECT_THAT(findings, ElementsAre(Names("n2", "can't reach n4 at 10.0.0.4")));
  EXPECT_THAT(findings[0].value, HasSubstr("nor does it the other way"));
  EXPECT_THAT(findings[0].fix, HasSubstr("ip route get 10.0.0.4"));
}

TEST(CheckNetwork, OneDirection) {
  EXPECT_THAT(Check(Answers(5, {{4, 2}})), ElementsAre(Names("n4", "can't reach n2")));
}

TEST(CheckNetwork, ANodeThatIsCutOffIsNamedAndNotItsPeers) {
  EXPECT_THAT(Check(Answers(5, AllOfNode(3, 5, true, true))),
              ElementsAre(Names("n3", "is cut off on its data address 10.0.0.3: 4 hosts")));
}

TEST(CheckNetwork, AFirewallInFrontOfOneNode) {
  const auto findings = Check(Answers(5, AllOfNode(0, 5, true, false)));
  EXPECT_THAT(findings, ElementsAre(Names("n0", "none of 4 hosts reaches it")));
  EXPECT_THAT(findings[0].fix, HasSubstr("20001, 20002"));
  EXPECT_THAT(Check(Answers(5, AllOfNode(1, 5, false, true))),
              ElementsAre(Names("n1", "reaches none of 4 hosts")));
}

TEST(CheckNetwork, TwoFaultsAtOnce) {
  auto cut = AllOfNode(3, 6, true, true);
  cut.insert({{1, 2}, {2, 1}});
  EXPECT_THAT(Check(Answers(6, cut)),
              ElementsAre(Names("n3", "is cut off"), Names("n1", "can't reach n2")));
}

TEST(CheckNetwork, OfTwoNodesNobodyCanTellWhich) {
  EXPECT_THAT(Check(Answers(2, {{0, 1}})), ElementsAre(Names("n0", "can't reach n1")));
  EXPECT_THAT(Check(Answers(2, {{0, 1}, {1, 0}})),
              ElementsAre(Names("", "no host reaches another one")));
}

TEST(CheckNetwork, AHostWithoutAnAnswerAccusesNobody) {
  auto nodes = Answers(4, AllOfNode(2, 4, true, true));
  nodes[2].absent = "did not say hello within 10 s";
  EXPECT_THAT(Check(nodes), IsEmpty());
}

TEST(CheckNetwork, ATakenPortIsTheFaultOfItsHost) {
  auto nodes = Answers(4, AllOfNode(2, 4, true, false));
  nodes[2].probe.mutable_network()->set_listen_error(
      "10.0.0.2:29500 is in use by pid 812 (python train.py)");
  const auto findings = Check(nodes);
  EXPECT_THAT(findings, ElementsAre(Names("n2", "pid 812")));
  EXPECT_THAT(findings[0].fix, HasSubstr("end the program that holds the port on n2"));
}

TEST(CheckNetwork, ANameThatMeansOneself) {
  auto nodes = Answers(4, {{1, 2}});
  nodes[1].probe.mutable_network()->mutable_connected(1)->set_address("127.0.1.1");
  const auto findings = Check(nodes);
  EXPECT_THAT(findings, ElementsAre(Names("n1", "takes 10.0.0.2 for itself (127.0.1.1)")));
  EXPECT_THAT(findings[0].fix, HasSubstr("addr="));
}

TEST(CheckInterface, NoRoute) {
  auto nodes = Answers(2, {});
  nodes[0].probe.mutable_network()->set_route_error("no route to 10.0.0.1: Network is unreachable");
  nodes[1].probe.mutable_network()->set_iface("ib9");
  nodes[1].probe.mutable_network()->set_route_error("there is no interface ib9");
  Findings out;
  CheckInterface(nodes, Options(), out);
  EXPECT_THAT(out, ElementsAre(Names("n0", "no route"), Names("n1", "there is no interface ib9")));
  EXPECT_THAT(out[1].fix, HasSubstr("correct iface= of n1"));
}

}  // namespace
}  // namespace muster::preflight
