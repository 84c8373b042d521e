#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/simulation.h"

// Preflight as the engine plays it: for jobs, and for checks beside them.

namespace muster::testing {
namespace {

using engine::TimerKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class CheckFlow : public ::testing::Test {
 protected:
  ~CheckFlow() override { EXPECT_THAT(sim_.violations(), IsEmpty()); }

  std::vector<std::string> Findings(uint64_t check) {
    std::vector<std::string> lines;
    const auto result = sim_.CheckResult(check);
    if (!result) return {"the check has not ended"};
    for (const auto& finding : result->findings())
      lines.push_back(finding.check() + ": " + finding.host() + ": " + finding.value());
    return lines;
  }

  Simulation sim_{{"n1", "n2", "n3", "n4"}};
};

TEST_F(CheckFlow, HealthyHostsInOneRoundTripEach) {
  const uint64_t check = sim_.CheckHosts({"n1", "n2", "n3"});
  sim_.Settle();
  EXPECT_THAT(Findings(check), IsEmpty());
  for (const char* host : {"n1", "n2", "n3"}) {
    EXPECT_EQ(sim_.node(host).probes_answered(), 1) << host;
    EXPECT_TRUE(sim_.remembered().at(host).has_result());
  }
  EXPECT_TRUE(sim_.state().links.at("n1").state == v1::LINK_STATE_UP) << "kept for what comes next";
  EXPECT_FALSE(sim_.HasTimer(TimerKind::kConnect) || sim_.HasTimer(TimerKind::kProbe));
}

TEST_F(CheckFlow, ACheckWaitsForNoJobAndDisturbsNone) {
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Settle();
  ASSERT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  const uint64_t check = sim_.CheckHosts({"n1", "n3"});
  sim_.Settle();
  EXPECT_THAT(Findings(check), IsEmpty());
  EXPECT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  EXPECT_TRUE(sim_.state().checks.empty() || sim_.state().checks.begin()->second.forgotten);
}

TEST_F(CheckFlow, AllThatIsWrongIsNamedInOneGo) {
  sim_.Cut("n2");
  sim_.node("n3").faults.silent = true;
  sim_.node("n1").faults.port_error = "10.0.0.1:29500 is in use by pid 812 (python train.py)";
  const uint64_t check = sim_.CheckHosts({"n1", "n2", "n3", "n4"});
  sim_.Cut("n2");
  sim_.Settle();
  sim_.FireTimer(TimerKind::kConnect);
  sim_.Settle();
  EXPECT_FALSE(sim_.CheckResult(check));
  sim_.FireTimer(TimerKind::kProbe);
  sim_.Settle();
  EXPECT_THAT(Findings(check),
              ElementsAre(StartsWith("connect: n2: did not say hello within 20 s"),
                          StartsWith("connect: n3: did not answer the preflight probe within 20 s"),
                          StartsWith("port: n1: 10.0.0.1:29500 is in use by pid 812")));
  EXPECT_THAT(sim_.remembered().at("n4").findings(), IsEmpty());
  EXPECT_THAT(sim_.remembered().at("n2").findings(), SizeIs(1));
  EXPECT_EQ(sim_.node("n4").probes_answered(), 1);
}

TEST_F(CheckFlow, APairThatDoesNotReachEachOther) {
  sim_.node("n2").faults.unreachable = {2};
  sim_.node("n3").faults.unreachable = {1};
  const uint64_t check = sim_.CheckHosts({"n1", "n2", "n3", "n4"});
  sim_.Settle();
  EXPECT_THAT(Findings(check),
              ElementsAre("network: n2: can't reach n3 at n3: connection refused; nor does it the "
                          "other way"));
}

TEST_F(CheckFlow, ABreakOfALinkAsksAllAnew) {
  const uint64_t check = sim_.CheckHosts({"n1", "n2"});
  sim_.node("n2").faults.silent = true;
  sim_.Settle();
  EXPECT_FALSE(sim_.CheckResult(check));
  sim_.node("n2").faults.silent = false;
  sim_.Cut("n2");
  sim_.Heal("n2");
  sim_.Settle();
  EXPECT_THAT(Findings(check), IsEmpty());
  EXPECT_EQ(sim_.node("n1").probes_answered(), 2);
  EXPECT_EQ(sim_.node("n2").probes_answered(), 1);
}

TEST_F(CheckFlow, ALinkThatBreaksForEverIsGivenUp) {
  const uint64_t check = sim_.CheckHosts({"n1", "n2"});
  sim_.node("n1").faults.silent = true;  // so that it does not end before
  for (int i = 0; i < 4; ++i) {
    sim_.Settle();
    sim_.Cut("n2");
    sim_.Heal("n2");
  }
  sim_.node("n1").faults.silent = false;
  sim_.Settle();
  EXPECT_THAT(Findings(check), ElementsAre(StartsWith("connect: n2: its link breaks again")));
}

TEST_F(CheckFlow, TheInterfaceOnTheWayToTheHeadIsTheRanks) {
  const uint64_t job = sim_.Submit({"n1", "n2"});
  sim_.Settle();
  ASSERT_EQ(sim_.job(job).state, v1::JOB_STATE_RUNNING);
  for (const char* host : {"n1", "n2"}) {
    std::map<std::string, std::string> env;
    for (const auto& variable : sim_.node(host).specs().begin()->second.env())
      env[variable.name()] = variable.value();
    EXPECT_EQ(env["GLOO_SOCKET_IFNAME"], std::string("eth-") + host);
    EXPECT_EQ(env["NCCL_SOCKET_IFNAME"], std::string("=eth-") + host);
  }
}

TEST_F(CheckFlow, TwoNamesOfOneWorker) {
  // The worker ends the older of two streams of one controller: n1's, when n2's comes.
  const uint64_t check = sim_.CheckHosts({"n1", "n2", "n3"});
  sim_.node("n2").faults.boot_id = "boot-n1";
  sim_.node("n3").faults.silent = true;
  sim_.Settle();
  sim_.Cut("n1");
  sim_.node("n3").faults.silent = false;
  sim_.Settle();
  EXPECT_THAT(Findings(check), ElementsAre(StartsWith("machine: n2: is the same machine as n1")));
}

}  // namespace
}  // namespace muster::testing
