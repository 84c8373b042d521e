#include "tests/worker/e2e_fixture.h"

#include <signal.h>

#include <fstream>
#include <sstream>

#include "worker/facts/proc_reader.h"

namespace muster::testing {
namespace {

std::vector<pid_t> ShimsBelow(const std::string& folder) {
  std::vector<pid_t> found;
  for (const pid_t pid : facts::ProcReader::Real().Pids()) {
    const std::string command = facts::ProcReader::Real().Command(pid);
    if (command.rfind("muster-shim " + folder, 0) == 0 && Alive(pid)) found.push_back(pid);
  }
  return found;
}

}  // namespace

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

void WorkerE2e::StartDaemon(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"--state-dir", state_dir(), "--name", "node1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  daemon_ = std::make_unique<Daemon>(arguments);
  Connect();
}

void WorkerE2e::Connect(bool acknowledge) {
  client_.reset();
  client_ =
      std::make_unique<Client>("unix:" + state_dir() + "/musterd.sock", controller_, acknowledge);
  ASSERT_TRUE(client_->WaitHello(10s).has_value());
}

void WorkerE2e::Restart() {
  daemon_->KillHard();
  client_.reset();
  StartDaemon();
}

void WorkerE2e::TearDown() {
  client_.reset();
  if (daemon_->pid() > 0) {
    EXPECT_EQ(daemon_->Terminate(), 0);
  }
  // Shims end by themselves once all is read; a failed test may leave ranks.
  for (const pid_t pid : ShimsBelow(temp_.path())) {
    EXPECT_TRUE(WaitGone(pid, 2s)) << "shim " << pid << " is left";
    if (Alive(pid)) kill(pid, SIGKILL);
  }
  for (const pid_t pid : ProcessesOf(controller_)) {
    ADD_FAILURE() << "left: " << pid << " " << facts::ProcReader::Real().Command(pid);
    kill(pid, SIGKILL);
  }
}

v1::Observed WorkerE2e::LaunchSpec(const v1::Desired& prepare) {
  const v1::AttemptId& id = prepare.id();
  client_->Send(prepare);
  const auto prepared = client_->WaitFor(
      id, [](const auto& o) { return o.reached() || !o.refused().empty(); }, 20s);
  EXPECT_TRUE(prepared.has_value());
  EXPECT_EQ(prepared.value_or(v1::Observed()).refused(), "");
  client_->Send(Wish(id, 2, v1::GOAL_RUNNING));
  const auto running = client_->WaitFor(
      id, [](const auto& o) { return o.generation() == 2 && o.reached(); }, 20s);
  EXPECT_TRUE(running.has_value());
  return running.value_or(v1::Observed());
}

v1::Observed WorkerE2e::Launch(const v1::AttemptId& id, const std::vector<std::string>& argv,
                               int count) {
  return LaunchSpec(Prepare(id, argv, count));
}

v1::Observed WorkerE2e::WaitEnd(const v1::AttemptId& id, std::chrono::milliseconds limit) {
  const auto end = client_->WaitFor(
      id, [](const auto& o) { return o.has_end(); }, limit);
  EXPECT_TRUE(end.has_value());
  return end.value_or(v1::Observed());
}

v1::Observed WorkerE2e::Stop(const v1::AttemptId& id, double grace_s, uint64_t generation) {
  client_->Send(Wish(id, generation, v1::GOAL_STOPPED, grace_s));
  const auto stopped = client_->WaitFor(
      id,
      [generation](const auto& o) {
        return o.generation() == generation && o.reached() && o.has_end();
      },
      std::chrono::milliseconds(static_cast<int64_t>(grace_s * 1000)) + 15s);
  EXPECT_TRUE(stopped.has_value());
  return stopped.value_or(v1::Observed());
}

std::string WorkerE2e::RankFile(const v1::AttemptId& id, uint32_t rank,
                                const std::string& name) const {
  return state_dir() + "/jobs/" + id.controller_id() + "/" + id.job_id() + "/attempt_" +
         std::to_string(id.attempt()) + "/" + std::to_string(rank) + "/" + name;
}

}  // namespace muster::testing
