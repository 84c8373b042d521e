#include "controller/nodes/dial_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

namespace muster::nodes {
namespace {

bool Never() {
  return false;
}

TEST(DialGate, HasSoManyPlaces) {
  DialGate gate(2, Never);
  StopSignal stop;
  std::optional<DialGate::Place> first(gate.Enter(stop));
  const DialGate::Place second = gate.Enter(stop);
  EXPECT_TRUE(*first);
  EXPECT_TRUE(second);
  std::atomic<bool> entered{false};
  std::thread third([&] {
    const DialGate::Place place = gate.Enter(stop);
    entered = static_cast<bool>(place);
  });
  EXPECT_FALSE(entered);
  first.reset();
  third.join();
  EXPECT_TRUE(entered);
}

TEST(DialGate, WhoIsStoppedGivesWay) {
  DialGate gate(1, Never);
  StopSignal stop;
  StopSignal never;
  std::optional<DialGate::Place> held(gate.Enter(never));
  std::thread waits([&] { EXPECT_FALSE(gate.Enter(stop)); });
  std::thread next([&] { EXPECT_TRUE(gate.Enter(never)); });
  stop.Set();
  waits.join();
  held.reset();
  next.join();
}

TEST(DialGate, ABusyMachineBeginsOneLoginAfterTheOther) {
  DialGate gate(100, [] { return true; });
  StopSignal stop;
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kLogins = 6;
  std::vector<std::thread> threads;
  for (int i = 0; i < kLogins; ++i) threads.emplace_back([&] { EXPECT_TRUE(gate.Enter(stop)); });
  for (std::thread& thread : threads) thread.join();
  // The first at once; a lower bound, so a slow machine does no harm.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, (kLogins - 1) * DialGate::kPace);
}

TEST(DialGate, AnIdleMachineBeginsAllAtOnce) {
  int asked = 0;
  DialGate gate(100, [&asked] { return ++asked > 1'000'000; });
  StopSignal stop;
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(gate.Enter(stop));
  EXPECT_LE(asked, 50);  // never asked twice about one login
}

TEST(MachineIsBusy, ReadsWhatTheKernelSays) {
  // As many threads that compute as there are processors, and this one.
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back([&stop] {
      while (!stop) {
      }
    });
  }
  bool busy = false;
  for (int i = 0; i < 1000 && !busy; ++i) {
    busy = MachineIsBusy();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(busy);
}

}  // namespace
}  // namespace muster::nodes
