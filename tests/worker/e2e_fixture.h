#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/worker/worker_testing.h"

namespace muster::testing {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace)

// One daemon and one client a test; at the end no process of the test may be left.
class WorkerE2e : public ::testing::Test {
 protected:
  void SetUp() override { StartDaemon(); }
  void TearDown() override;

  void StartDaemon(std::vector<std::string> more = {});
  void Connect(bool acknowledge = true);
  // SIGKILL to the daemon, then a new one and a new stream.
  void Restart();

  // Prepares and starts `count` ranks of `argv`; the Observed in which all run (or have ended).
  v1::Observed Launch(const v1::AttemptId& id, const std::vector<std::string>& argv, int count = 1);
  v1::Observed LaunchSpec(const v1::Desired& prepare);
  // The Observed with an end report after the job ended by itself.
  v1::Observed WaitEnd(const v1::AttemptId& id, std::chrono::milliseconds limit = 20s);
  v1::Observed Stop(const v1::AttemptId& id, double grace_s, uint64_t generation = 100);

  // Unique per test, so that leftovers can be told.
  const std::string controller_ = "t" + std::to_string(getpid());
  v1::AttemptId Job(const std::string& job, uint32_t attempt = 0) {
    return Id(job, attempt, controller_);
  }
  std::string state_dir() const { return temp_.path() + "/s"; }
  std::string RankFile(const v1::AttemptId& id, uint32_t rank, const std::string& name) const;

  TempDir temp_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

std::string ReadFile(const std::string& path);

}  // namespace muster::testing
