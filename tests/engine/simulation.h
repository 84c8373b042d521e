#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controller/engine/reduce.h"
#include "tests/engine/fake_node.h"

namespace muster::testing {

// The engine among fake nodes, with lossy links, a store, a log organ and timers, all of which move
// only when the test says so. Checks after each event what must always hold; `violations` names
// what did not.
class Simulation {
 public:
  explicit Simulation(const std::vector<std::string>& hosts);

  // A job of one rank on each slot of these hosts. Its plan is made as the planner would.
  uint64_t Submit(const std::vector<std::string>& hosts, uint32_t slots = 1,
                  const std::vector<std::string>& skip_checks = {}, int check_timeout_s = 0);
  // The same without a plan: slots are those of the nodes' devices.
  uint64_t SubmitUnplanned(const std::vector<std::string>& hosts,
                           const std::string& source = "hosts");
  // A check of these hosts, without a command.
  uint64_t CheckHosts(const std::vector<std::string>& hosts);
  // What a check ended with; nothing while it goes on.
  std::optional<v1::CheckResponse> CheckResult(uint64_t check) const {
    const auto it = checks_done_.find(check);
    return it == checks_done_.end() ? std::nullopt : std::optional(it->second);
  }
  void Stop(uint64_t job, std::optional<engine::milliseconds> grace = std::nullopt);
  // The controller is killed and started again: what was not persisted is gone.
  void Restart();

  // --- one move each; what can move now
  // The next message, hello or loss of a link; the next step of a node; a rank's end; a timer;
  // complete logs.
  std::vector<std::function<void()>> Moves(bool with_faults);
  // Moves without faults and without timers until nothing moves.
  void Settle();
  // Fires the timers, each followed by Settle(), and lets ranks that still run exit with 0, until
  // nothing is left to do.
  void PlayToTheEnd();

  // --- single moves for written tests
  void FireTimer(engine::TimerKind kind);
  void ExitRank(uint64_t job, uint32_t rank, int32_t code, int32_t signal = 0);
  // The link breaks and can't be opened until Heal().
  void Cut(const std::string& host);
  void Heal(const std::string& host);
  // Its machine answers that nobody listens there.
  void Refuse(const std::string& host);
  // A later hello over a link that is up: what the node has found since the first.
  void GreetAgain(const std::string& host);

  FakeNode& node(const std::string& host) { return hosts_.at(host).node; }
  const engine::State& state() const { return state_; }
  // The job, also after the engine has forgotten it.
  const engine::JobRun& job(uint64_t id) const { return jobs_.at(id); }
  const std::vector<v1::JobEvent>& events(uint64_t job) { return events_[job]; }
  bool HasEvent(uint64_t job, const std::string& text);
  bool HasTimer(engine::TimerKind kind) const;
  const std::map<std::string, v1::NodeCheck>& remembered() const { return remembered_; }
  bool HasJob(uint64_t id) const { return jobs_.contains(id); }
  const std::vector<std::string>& violations() const { return violations_; }
  int64_t now_ns = 1'000'000'000;

 private:
  struct HostSim {
    FakeNode node;
    bool dialled = false;  // a link object exists
    bool up = false;       // and its stream is open
    bool cut = false;
    std::deque<v1::AttachRequest> down;
    std::deque<v1::AttachResponse> up_queue;
  };
  using What = decltype(engine::Event::what);
  void Handle(What what);
  void Persist(const engine::Action& action);
  void Perform(const engine::Action& action);
  void Check();
  void CheckEnd(const engine::JobRun& job);
  uint64_t SubmitSpec(v1::JobSpec spec, bool planned);

  void Deliver(const std::string& host);
  void Receive(const std::string& host);
  void Report(const std::string& host, v1::Observed observed);
  void OpenLink(const std::string& host);
  void BreakLink(const std::string& host);
  void AddLinkMoves(const std::string& host, bool with_faults,
                    std::vector<std::function<void()>>& moves);
  bool LogsCanComplete(const engine::JobRun& job) const;

  engine::State state_;
  std::map<std::string, HostSim> hosts_;
  std::set<engine::TimerKey> timers_;
  std::map<uint64_t, engine::JobRun> store_;  // what is durable
  std::map<uint64_t, engine::JobRun> jobs_;   // newest view of every job
  std::map<uint64_t, std::vector<v1::JobEvent>> events_;
  std::map<uint64_t, std::set<std::string>> abandoned_;
  std::set<uint64_t> logs_open_;
  std::set<uint64_t> logs_complete_;
  std::set<uint64_t> finished_;
  std::map<uint64_t, v1::CheckResponse> checks_done_;
  std::map<std::string, v1::NodeCheck> remembered_;  // by host
  std::vector<std::string> violations_;
  uint64_t last_job_ = 0;
  uint64_t last_check_ = engine::kFirstCheck;
};

}  // namespace muster::testing
