#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "controller/logs/file_registry.h"
#include "tests/sim/sim_cluster.h"

// Whole jobs over as many nodes as a large cluster has: real links, streams, store and log files.
// How long they take is for muster_launch_bench; here counts, memory and descriptors.

namespace muster::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr int kNodes = 250;
constexpr int kSlots = 2;

size_t OpenFiles() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// Of this process, in MiB; `field`: "VmRSS:" or "VmHWM:".
long Memory(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return std::stol(line.substr(std::strlen(field))) / 1024;
  }
  return -1;
}

v1::Job RunJob(SimCluster& cluster, const v1::JobSpec& spec) {
  v1::Job job;
  const auto submitted = cluster.controller().Submit(spec);
  EXPECT_TRUE(submitted.ok()) << submitted.status();
  if (!submitted.ok()) return job;
  absl::Notification ended;
  const auto subscription = cluster.controller().Watch(
      submitted->job_id(), 0, [&](const std::vector<v1::JobEvent>&, std::optional<v1::Job> final) {
        if (!final) return;
        job = *final;
        ended.Notify();
      });
  EXPECT_TRUE(subscription.ok());
  ended.WaitForNotification();
  return job;
}

// A job ends before the last bytes of its logs are on disk.
void WaitForLogs(const logs::LogRegistry& logs, const SimCluster& cluster, const v1::Job& job) {
  v1::AttemptId id;
  id.set_controller_id(cluster.controller_id());
  id.set_job_id(job.id());
  id.set_attempt(job.attempt());
  while (!logs.Complete(id)) absl::SleepFor(absl::Milliseconds(10));
}

TEST(LaunchSim, JobsOverHundredsOfNodes) {
  const TempDir output;  // before the cluster, which writes into it to its end
  const auto logs = logs::FileRegistry::Make({});
  const size_t files_before = OpenFiles();
  const long memory_before = Memory("VmRSS:");
  SimCluster cluster({}, logs.get());
  v1::JobSpec spec = SimCluster::Spec(kNodes, milliseconds(120'000));
  for (v1::Host& host : *spec.mutable_inventory()->mutable_hosts()) host.set_slots(kSlots);
  spec.add_command("train");
  spec.set_working_dir("/work");
  spec.set_output_root(output.path());
  for (int round = 1; round <= 2; ++round) {
    const v1::Job job = RunJob(cluster, spec);
    ASSERT_EQ(job.outcome().code(), 0) << job.outcome().message();
    ASSERT_EQ(job.ranks_size(), kNodes * kSlots);
    for (const v1::RankView& rank : job.ranks()) {
      EXPECT_EQ(rank.status().state(), v1::RANK_STATE_EXITED);
      EXPECT_EQ(rank.status().exit().code(), 0);
    }
    EXPECT_EQ(job.ends_size(), kNodes);
    WaitForLogs(*logs, cluster, job);
    // Warm links: no node is greeted again, each is asked once a job.
    EXPECT_THAT(cluster.workers().Hellos(), AllOf(SizeIs(kNodes), Each(Pair(::testing::_, 1))));
    EXPECT_THAT(cluster.workers().Probes(), AllOf(SizeIs(kNodes), Each(Pair(::testing::_, round))));
  }
  // Both ends of each link are here, and the log files that stay open (node_log.cc).
  constexpr size_t kLogFiles = 256;
  EXPECT_LE(OpenFiles(), files_before + 2 * kNodes + kLogFiles + 100);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  // The workers' half included. 1,000 nodes may take 256 MiB.
  EXPECT_LE(Memory("VmHWM:"), memory_before + 256 / 4 * 2);
#endif
}

}  // namespace
}  // namespace muster::testing
