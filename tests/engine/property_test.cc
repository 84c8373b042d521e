#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "controller/engine/transitions.h"
#include "tests/engine/simulation.h"

// Whatever happens, in whatever order: every job comes to an end, nothing is left running, and what
// the end says is true.

namespace muster::testing {
namespace {

using ::testing::IsSupersetOf;

// RC_PARAMS of the environment counts, if it is there.
const int kParams = ::setenv("RC_PARAMS", "max_success=500 max_size=150", 0);

const std::vector<std::vector<std::string>> kHostSets = {
    {"n1"}, {"n2"}, {"n1", "n2"}, {"n2", "n3"}, {"n1", "n2", "n3"}};

// One random thing: mostly a move that could happen now, sometimes a user or the death of the
// controller.
void RandomThing(Simulation& sim, uint32_t choice) {
  const uint32_t kind = choice % 100;
  const uint32_t pick = choice / 100;
  if (kind < 4) {
    sim.Submit(kHostSets[pick % kHostSets.size()], 1 + pick % 2);
  } else if (kind < 6 && !sim.state().jobs.empty()) {
    auto it = sim.state().jobs.begin();
    std::advance(it, pick % sim.state().jobs.size());
    sim.Stop(it->first, engine::milliseconds(pick % 3000));
  } else if (kind < 8) {
    sim.Restart();
  } else if (kind < 10) {
    const char* const hosts[] = {"n1", "n2", "n3"};
    auto& faults = sim.node(hosts[pick % 3]).faults;
    faults.prepare_error = pick % 7 == 0 ? "no space left on device" : "";
    faults.start_error = pick % 7 == 1 ? "exec /x/train: no such file" : "";
    faults.program_error = pick % 7 == 2 ? "no such program" : "";
  } else {
    // Losses and timers are rarer than progress, else nothing ever runs.
    const auto moves = sim.Moves(kind < 25);
    if (!moves.empty()) moves[pick % moves.size()]();
  }
}

void ExpectAllOver(Simulation& sim, uint64_t jobs) {
  for (uint64_t id = 1; id <= jobs; ++id) {
    RC_ASSERT(engine::IsTerminal(sim.job(id).state));
    RC_ASSERT(sim.job(id).outcome.has_value());
    RC_ASSERT(sim.events(id).back().sequence() == sim.events(id).size());
  }
  for (const char* host : {"n1", "n2", "n3"}) RC_ASSERT(sim.node(host).Running().empty());
  for (const auto& [id, job] : sim.state().jobs) RC_ASSERT(job.forgotten);
}

bool Holds(const std::function<void()>& property, const std::string& name) {
  return rc::check(name, property);
}

TEST(EngineProperty, EveryRunEndsWithNothingLeft) {
  std::set<v1::Cause> seen;
  EXPECT_TRUE(Holds(
      [&] {
        Simulation sim({"n1", "n2", "n3"});
        uint64_t jobs = sim.Submit({"n1", "n2"}, 2);
        const auto choices = *rc::gen::scale(
            4.0, rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 30)));
        for (const uint32_t choice : choices) RandomThing(sim, choice);
        while (sim.HasJob(jobs + 1)) ++jobs;
        sim.PlayToTheEnd();
        RC_LOG() << (sim.violations().empty() ? "" : sim.violations().front());
        RC_ASSERT(sim.violations().empty());
        ExpectAllOver(sim, jobs);
        for (uint64_t id = 1; id <= jobs; ++id) seen.insert(sim.job(id).outcome->cause());
      },
      "every run ends with nothing left"));
  // The dice must have shown every kind of end, or this test tests little.
  EXPECT_THAT(seen, IsSupersetOf({v1::CAUSE_OK, v1::CAUSE_RANK_FAILED, v1::CAUSE_PREFLIGHT_FAILED,
                                  v1::CAUSE_LAUNCH_FAILED, v1::CAUSE_NODE_LOST, v1::CAUSE_LEFTOVERS,
                                  v1::CAUSE_STOPPED_BY_USER}));
}

TEST(EngineProperty, TheSameStateAndEventGiveTheSameStep) {
  EXPECT_TRUE(Holds(
      [] {
        const auto choices =
            *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange(0u, 1u << 30));
        Simulation a({"n1", "n2", "n3"});
        Simulation b({"n1", "n2", "n3"});
        a.Submit({"n1", "n2"});
        b.Submit({"n1", "n2"});
        for (const uint32_t choice : choices) {
          RandomThing(a, choice);
          RandomThing(b, choice);
        }
        RC_ASSERT(a.events(1).size() == b.events(1).size());
        for (size_t i = 0; i < a.events(1).size(); ++i) {
          RC_ASSERT(a.events(1)[i].SerializeAsString() == b.events(1)[i].SerializeAsString());
        }
      },
      "the same state and event give the same step"));
}

}  // namespace
}  // namespace muster::testing
