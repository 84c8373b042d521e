#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/worker_testing.h"
#include "worker/ranks/attempt_machine.h"

// An attempt over a fake world and a fake clock.

namespace muster::ranks {

using shim::ShimCommand;

class FakeWorld : public AttemptEffects {
 public:
  std::string Spawn(uint32_t rank) override {
    calls.push_back("spawn " + std::to_string(rank));
    return spawn_error;
  }
  void Command(uint32_t rank, ShimCommand command) override {
    calls.push_back(std::string(1, static_cast<char>(command)) + std::to_string(rank));
  }
  ScanResult Scan() override {
    ++scans;
    return scan;
  }
  void Signal(const Leftover& leftover, int signal) override {
    calls.push_back("signal " + std::to_string(leftover.pid) + " " + std::to_string(signal));
  }
  void SignalRank(uint32_t rank, int signal) override {
    calls.push_back("rank " + std::to_string(rank) + " signal " + std::to_string(signal));
  }
  void KillCgroup() override { calls.push_back("cgroup kill"); }
  void WakeShims() override { ++wakes; }
  void KillShim(uint32_t rank) override { calls.push_back("kill shim " + std::to_string(rank)); }
  void Inspect(std::optional<int64_t> kernel_since_ns) override {
    inspecting = true;
    kernel_since = kernel_since_ns;
  }
  std::string ErrorRecord(uint32_t) override { return error_record; }
  std::vector<std::string> PortHolders(uint32_t) override { return port_holders; }
  void Save(const worker::AttemptRecord& record) override { saved = record; }
  void Changed() override { ++changes; }
  void Ended() override { calls.push_back("ended"); }

  std::vector<std::string> Take() { return std::exchange(calls, {}); }

  std::vector<std::string> calls;
  std::string spawn_error;
  std::string error_record = "{}";
  ScanResult scan;
  std::vector<std::string> port_holders;
  worker::AttemptRecord saved;
  bool inspecting = false;  // Inspect was called, and not yet answered
  bool blind = false;       // ... and will not be
  Inspection found;         // the answer
  std::optional<int64_t> kernel_since;
  int wakes = 0;
  int scans = 0;
  int changes = 0;
};

inline Leftover Process(pid_t pid, bool in_tree) {
  Leftover leftover;
  leftover.pid = pid;
  leftover.start_ticks = 1000 + static_cast<uint64_t>(pid);
  leftover.command = "left";
  leftover.state = 'S';
  leftover.in_shim_tree = in_tree;
  return leftover;
}

class AttemptMachineTest : public ::testing::Test {
 protected:
  AttemptMachineTest() { clock_.Advance(std::chrono::hours(1)); }

  void Wish(uint64_t generation, v1::Goal goal, double grace_s = -1) {
    machine_.Apply(testing::Wish(testing::Id("1"), generation, goal, grace_s));
  }
  void PrepareRanks(int count) {
    machine_.Apply(testing::Prepare(testing::Id("1"), {"x"}, count));
    for (int i = 0; i < count; ++i) {
      machine_.OnStatus(static_cast<uint32_t>(i), Status(shim::ShimState::kPrepared));
    }
  }
  // Prepared, started, all running; the calls so far forgotten.
  void RunRanks(int count) {
    PrepareRanks(count);
    Wish(2, v1::GOAL_RUNNING);
    for (int i = 0; i < count; ++i) {
      machine_.OnStatus(static_cast<uint32_t>(i), Status(shim::ShimState::kRunning));
    }
    world_.Take();
  }
  static shim::ShimStatus Status(shim::ShimState state) {
    shim::ShimStatus status;
    status.state = state;
    status.rank_pid = state == shim::ShimState::kPrepared ? 0 : 500;
    return status;
  }
  // With a child left in its shim's tree, as far as the shim knows; `childless`: without.
  void Exit(uint32_t rank, int code, bool term = false, bool kill = false, bool childless = false) {
    shim::ShimStatus status = Status(shim::ShimState::kExited);
    status.exit_code = code;
    status.signal = code > 128 ? code - 128 : 0;
    status.term_sent = term;
    status.kill_sent = kill;
    status.ended_ns = clock_.RealtimeNs();
    status.childless = childless;
    machine_.OnStatus(rank, status);
  }
  // Lets time pass the way the reactor does: to each wanted tick.
  void Pass(std::chrono::nanoseconds duration) {
    const auto end = clock_.Now() + duration;
    while (machine_.NextTick() && *machine_.NextTick() <= end) {
      if (*machine_.NextTick() > clock_.Now()) clock_.Advance(*machine_.NextTick() - clock_.Now());
      machine_.Tick();
      Answer();
    }
    if (clock_.Now() < end) clock_.Advance(end - clock_.Now());
  }
  // What the node finds at the end.
  void Answer() {
    if (world_.blind || !std::exchange(world_.inspecting, false)) return;
    machine_.OnInspected(world_.found);
  }
  v1::RankStatus Rank(uint32_t rank) { return testing::RankOf(machine_.Observe(), rank); }
  bool Done() { return machine_.Observe().has_end(); }

  FakeClock clock_;
  FakeWorld world_;
  AttemptMachine machine_{worker::AttemptRecord(), world_, clock_};
};

}  // namespace muster::ranks
