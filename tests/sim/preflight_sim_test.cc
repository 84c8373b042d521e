#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/sim_cluster.h"

// Preflight of as many hosts as a large cluster has, over real links and streams. How long it takes
// is for muster_preflight_bench; here counts.

namespace muster::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::_;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::Property;
using ::testing::SizeIs;
using ::testing::StartsWith;

auto Is(const std::string& check, const std::string& host, const std::string& value) {
  return AllOf(Property("check", &v1::Finding::check, check),
               Property("host", &v1::Finding::host, host),
               Property("value", &v1::Finding::value, HasSubstr(value)),
               Property("fix", &v1::Finding::fix, HasSubstr("--exclude " + host)));
}

TEST(PreflightSim, OneRoundTripANodeAndAgainOverWarmLinks) {
  SimCluster cluster({});
  const v1::JobSpec spec = SimCluster::Spec(64, milliseconds(60'000));
  for (int round = 1; round <= 3; ++round) {
    const auto response = cluster.Check(spec);
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_THAT(response->findings(), IsEmpty());
    EXPECT_THAT(response->nodes(), SizeIs(64));
    EXPECT_THAT(cluster.workers().Probes(), AllOf(SizeIs(64), Each(Pair(_, round))));
    EXPECT_THAT(cluster.workers().Hellos(), AllOf(SizeIs(64), Each(Pair(_, 1))));
  }
}

TEST(PreflightSim, ThreeHundredWithADeadAndAStalledHost) {
  SimCluster cluster({.dead = {"n123"}, .stalled = {"n250"}});
  const auto response = cluster.Check(SimCluster::Spec(300, milliseconds(4'000)));
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_THAT(response->findings(),
              ElementsAre(Is("connect", "n123", "did not say hello within 4 s"),
                          Is("connect", "n250", "did not answer the preflight probe within 4 s")));
  EXPECT_THAT(response->nodes(), SizeIs(300));
  auto probes = cluster.workers().Probes();
  EXPECT_THAT(probes, AllOf(SizeIs(299), Each(Pair(_, 1))));
  // Each host remembers its verdict.
  const v1::ListNodesResponse nodes = cluster.controller().ListNodes();
  for (const v1::Node& node : nodes.nodes()) {
    const bool odd = node.host() == "n123" || node.host() == "n250";
    EXPECT_THAT(node.last_check().findings(), SizeIs(odd ? 1 : 0)) << node.host();
  }
}

TEST(PreflightSim, AJobIsRefusedWithTheSameFindings) {
  const TempDir output;  // before the cluster, which writes into it to its end
  SimCluster cluster({.dead = {"n002"}});
  v1::JobSpec spec = SimCluster::Spec(4, milliseconds(1'000));
  spec.add_command("train");
  spec.set_working_dir("/work");
  spec.set_output_root(output.path());
  const auto submitted = cluster.controller().Submit(spec);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  absl::Notification ended;
  v1::Job job;
  const auto subscription = cluster.controller().Watch(
      submitted->job_id(), 0, [&](const std::vector<v1::JobEvent>&, std::optional<v1::Job> final) {
        if (!final) return;
        job = *final;
        ended.Notify();
      });
  ASSERT_TRUE(subscription.ok());
  ended.WaitForNotification();
  EXPECT_EQ(job.outcome().code(), 120);
  EXPECT_THAT(job.outcome().message(), StartsWith("connect: n002: did not say hello within 1 s"));
}

}  // namespace
}  // namespace muster::testing
