#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "controller/logs/file_registry.h"
#include "controller/logs/growth.h"
#include "controller/logs/layout.h"
#include "controller/nodes/link_factory.h"
#include "tests/logs/attempt.h"
#include "tests/logs/temp_dir.h"

// Link, log organ and a real musterd with real ranks: what the ranks write is what the controller's
// disk has.

namespace muster::nodes {
namespace {

constexpr uint32_t kRanks = 2;

class RealWorkerTest : public testing::Test, public LinkListener {
 protected:
  RealWorkerTest() {
    std::filesystem::create_directory(dir_.File("output"));
    options_.controller_id = files_.id.controller_id();
    options_.musterd = std::string(getenv("MUSTER_BIN")) + "/musterd";
    options_.state_parent = dir_.File("state");
    options_.backoff_initial = std::chrono::milliseconds(10);
    registry_ = logs::FileRegistry::Make(logs::QuickOptions());
    EXPECT_TRUE(registry_->Open(files_).ok());
    auto link = MakeLinkFactory(options_)->Make(files_.plan.nodes(0).host(), "", *this, *registry_);
    EXPECT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
  }
  ~RealWorkerTest() override {
    link_.reset();
    if (worker_pid_ > 0) kill(worker_pid_, SIGTERM);
  }

  void OnUp(const std::string& /*host*/, const v1::WorkerHello& hello) override {
    absl::MutexLock lock(&mutex_);
    ++ups_;
    worker_pid_ = static_cast<pid_t>(hello.pid());
  }
  void OnLost(const std::string& /*host*/, const absl::Status& why) override {
    absl::MutexLock lock(&mutex_);
    lost_ = why.ToString();
  }
  void OnMessage(const std::string& /*host*/, v1::AttachResponse message) override {
    absl::MutexLock lock(&mutex_);
    if (message.has_observed()) observed_ = message.observed();
  }

  bool Wait(const std::function<bool()>& condition) {
    absl::MutexLock lock(&mutex_);
    const auto held = [&] {
      mutex_.AssertHeld();
      return condition();
    };
    const bool reached = mutex_.AwaitWithTimeout(absl::Condition(&held), absl::Seconds(60));
    if (!reached) ADD_FAILURE() << "last link error: " << lost_ << "\n" << observed_.DebugString();
    return reached;
  }
  void Wish(v1::Goal goal, uint64_t generation, const std::string& script = "") {
    v1::AttachRequest request;
    v1::Desired& desired = *request.mutable_desired();
    *desired.mutable_id() = files_.id;
    desired.set_generation(generation);
    desired.set_goal(goal);
    desired.mutable_grace()->set_seconds(1);
    for (uint32_t rank = 0; !script.empty() && rank < kRanks; ++rank) {
      v1::RankSpec& spec = *desired.add_ranks();
      spec.set_rank(rank);
      spec.set_local_rank(rank);
      for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script}) {
        spec.add_argv(word);
      }
      spec.set_working_dir("/");
      v1::EnvVar& variable = *spec.add_env();
      variable.set_name("RANK");
      variable.set_value(std::to_string(rank));
    }
    link_->Send(std::move(request));
  }
  void Run(const std::string& script) {
    link_->Start();
    ASSERT_TRUE(Wait([this] { return ups_ > 0; }));
    Wish(v1::GOAL_PREPARED, 1, script);
    ASSERT_TRUE(
        Wait([this] { return observed_.goal() == v1::GOAL_PREPARED && observed_.reached(); }));
    Wish(v1::GOAL_RUNNING, 2);
  }
  bool WaitComplete() {
    for (int i = 0; i < 6000 && !registry_->Complete(files_.id); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return registry_->Complete(files_.id);
  }
  std::string Content(uint32_t rank, v1::Stream stream) const {
    return logs::ReadFile(logs::RankDir(files_.output_dir, 0, rank) + "/" + logs::LogName(stream));
  }
  // What a rank's script printed, computed by the same shell here.
  static std::string Expected(uint32_t rank, const std::string& script) {
    const std::string command = "RANK=" + std::to_string(rank) + "; " + script + " 2>/dev/null";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out(64 << 20, '\0');
    out.resize(fread(out.data(), 1, out.size(), pipe));
    pclose(pipe);
    return out;
  }

  logs::TempDir dir_;
  logs::AttemptFiles files_ = logs::MakeAttempt(dir_.File("output"), 1, kRanks);
  LinkOptions options_;
  absl::Mutex mutex_;
  int ups_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string lost_ ABSL_GUARDED_BY(mutex_);
  v1::Observed observed_ ABSL_GUARDED_BY(mutex_);
  std::atomic<pid_t> worker_pid_{0};
  std::unique_ptr<logs::FileRegistry> registry_;
  std::unique_ptr<NodeLink> link_;
};

TEST_F(RealWorkerTest, LogsArriveByteForByte) {
  const std::string script = "seq 1 200000; echo \"rank $RANK\"; printf 'no newline'";
  Run(script + "; echo oops >&2");
  ASSERT_TRUE(WaitComplete());
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(Content(rank, v1::STREAM_STDOUT) == Expected(rank, script)) << rank;
    EXPECT_EQ(Content(rank, v1::STREAM_STDERR), "oops\n");
  }
  const std::string merged = logs::ReadFile(logs::MergedPath(files_.output_dir, files_.plan, 0, 0));
  // Lines of the other rank may stand between two of one rank.
  const size_t last_line = merged.find("1 out | rank 1\n");
  ASSERT_NE(last_line, std::string::npos);
  EXPECT_NE(merged.find("\n1 out + no newline\n", last_line), std::string::npos);
  EXPECT_NE(merged.find("0 err | oops\n"), std::string::npos);
}

// The daemon is killed while its ranks write; the link finds it gone, starts another one and
// nothing is missing.
TEST_F(RealWorkerTest, AKilledWorkerLosesNoByte) {
  const std::string script = "for i in 1 2 3 4 5 6 7 8 9 10; do seq 1 20000; sleep 0.1; done";
  Run(script);
  ASSERT_TRUE(Wait([this] { return observed_.goal() == v1::GOAL_RUNNING && observed_.reached(); }));
  const pid_t first = worker_pid_;
  kill(first, SIGKILL);
  ASSERT_TRUE(Wait([&] { return ups_ >= 2 && worker_pid_ != first; }));
  ASSERT_TRUE(WaitComplete());
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(Content(rank, v1::STREAM_STDOUT) == Expected(rank, script)) << rank;
  }
}

// The controller's end of the link is closed and made anew, with a log organ that knows only what
// is on disk.
TEST_F(RealWorkerTest, ARestartedControllerLosesNoByte) {
  const std::string script = "for i in 1 2 3 4 5 6 7 8 9 10; do seq 1 20000; sleep 0.1; done";
  Run(script);
  ASSERT_TRUE(Wait([this] { return observed_.goal() == v1::GOAL_RUNNING && observed_.reached(); }));
  link_.reset();
  registry_ = logs::FileRegistry::Make(logs::QuickOptions());
  ASSERT_TRUE(registry_->Open(files_).ok());
  link_ = *MakeLinkFactory(options_)->Make(files_.plan.nodes(0).host(), "", *this, *registry_);
  link_->Start();
  ASSERT_TRUE(WaitComplete());
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(Content(rank, v1::STREAM_STDOUT) == Expected(rank, script)) << rank;
  }
}

}  // namespace
}  // namespace muster::nodes
