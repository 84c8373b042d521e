// muster_preflight_bench: how long preflight takes, over simulated workers and over real ones.
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "controller/nodes/link_factory.h"
#include "tests/bench/report.h"
#include "tests/sim/sim_cluster.h"

namespace muster::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kRounds = 5;

struct Timed {
  double seconds = 0;
  size_t findings = 0;
};

template <typename Cluster>
Timed Once(Cluster& cluster, const v1::JobSpec& spec) {
  const auto began = std::chrono::steady_clock::now();
  const auto response = cluster.Check(spec);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (!response.ok()) throw std::runtime_error(std::string(response.status().message()));
  return {took.count(), static_cast<size_t>(response->findings_size())};
}

// The worst of some rounds: what a user may have to wait.
template <typename Cluster>
Timed Worst(Cluster& cluster, const v1::JobSpec& spec) {
  Timed worst;
  for (int i = 0; i < kRounds; ++i) {
    const Timed once = Once(cluster, spec);
    if (once.seconds > worst.seconds) worst = once;
  }
  return worst;
}

// Real workers of this machine on loopback addresses, with real probes and connections.
class RealCluster {
 public:
  RealCluster() {
    runtime::Controller::Options options;
    options.state_dir = state_.path();
    options.make_links = [this](const std::string& id) {
      nodes::LinkOptions links;
      links.controller_id = id;
      links.state_parent = workers_.path();
      return nodes::MakeLinkFactory(links);
    };
    options.logs = &logs_;
    controller_ = *runtime::Controller::Create(std::move(options));
  }
  ~RealCluster() {
    const v1::ListNodesResponse nodes = controller_->ListNodes();
    for (const v1::Node& node : nodes.nodes())
      kill(static_cast<pid_t>(node.facts().pid()), SIGTERM);
  }
  absl::StatusOr<v1::CheckResponse> Check(const v1::JobSpec& spec) {
    return CheckWith(*controller_, spec);
  }
  static v1::JobSpec Spec(int hosts) {
    v1::JobSpec spec;
    for (int i = 0; i < hosts; ++i) {
      v1::Host& host = *spec.mutable_inventory()->add_hosts();
      host.set_host("127.0.64." + std::to_string(i + 1));
      host.set_slots(1);
    }
    spec.mutable_check_timeout()->set_seconds(60);
    return spec;
  }

 private:
  TempDir state_;
  TempDir workers_;
  FakeLogRegistry logs_;
  std::unique_ptr<runtime::Controller> controller_;
};

int Run(bool json) {
  bench::Report report(
      json, {{"preflight.sim.warm_64", {2.0, "the 2 s that are allowed"}},
             {"preflight.real.warm_64", {2.0, "the 2 s that are allowed"}},
             {"preflight.sim.cold_300_dead_and_stalled", {10.0, "the 10 s that are allowed"}}});
  const auto add = [&](const std::string& name, const Timed& timed) {
    report.Add({name, timed.seconds, "s", false, std::to_string(timed.findings) + " findings"});
  };
  {
    SimCluster cluster({});
    const v1::JobSpec spec = SimCluster::Spec(64, milliseconds(60'000));
    add("preflight.sim.cold_64", Once(cluster, spec));
    add("preflight.sim.warm_64", Worst(cluster, spec));
  }
  {
    SimCluster cluster({});
    const v1::JobSpec spec = SimCluster::Spec(300, milliseconds(60'000));
    add("preflight.sim.cold_300", Once(cluster, spec));
    add("preflight.sim.warm_300", Worst(cluster, spec));
  }
  {
    SimCluster cluster({.dead = {"n123"}, .stalled = {"n250"}});
    add("preflight.sim.cold_300_dead_and_stalled",
        Once(cluster, SimCluster::Spec(300, milliseconds(4'000))));
  }
  {
    RealCluster cluster;
    const v1::JobSpec spec = RealCluster::Spec(64);
    add("preflight.real.cold_64", Once(cluster, spec));
    add("preflight.real.warm_64", Worst(cluster, spec));
  }
  report.Finish();
  return 0;
}

}  // namespace
}  // namespace muster::testing

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (argc > 2 || (!word.empty() && word != "--json")) {
    std::fprintf(stderr, "usage: muster_preflight_bench [--json]\n");
    return 2;
  }
  return muster::testing::Run(word == "--json");
}
