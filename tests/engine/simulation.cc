#include "tests/engine/simulation.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "controller/engine/outcome.h"
#include "controller/engine/transitions.h"
#include "controller/plan/planner.h"

namespace muster::testing {

using engine::IsTerminal;
using engine::JobRun;

Simulation::Simulation(const std::vector<std::string>& hosts) {
  state_.controller_id = "0123456789abcdef";
  state_.version = "0.1.0";
  for (const auto& host : hosts)
    hosts_.emplace(host, HostSim{FakeNode(host), false, false, false, {}, {}});
}

uint64_t Simulation::Submit(const std::vector<std::string>& hosts, uint32_t slots,
                            const std::vector<std::string>& skip_checks, int check_timeout_s) {
  v1::JobSpec spec;
  if (check_timeout_s > 0) spec.mutable_check_timeout()->set_seconds(check_timeout_s);
  for (const auto& check : skip_checks) spec.add_skip_checks(check);
  for (const auto& name : hosts) {
    auto& host = *spec.mutable_inventory()->add_hosts();
    host.set_host(name);
    host.set_slots(slots);
  }
  return SubmitSpec(std::move(spec), true);
}

uint64_t Simulation::SubmitUnplanned(const std::vector<std::string>& hosts,
                                     const std::string& source) {
  v1::JobSpec spec;
  spec.mutable_inventory()->set_source(source);
  for (const auto& name : hosts) {
    auto& host = *spec.mutable_inventory()->add_hosts();
    host.set_host(name);
    host.set_line(static_cast<uint32_t>(spec.inventory().hosts_size()));
  }
  return SubmitSpec(std::move(spec), false);
}

uint64_t Simulation::SubmitSpec(v1::JobSpec spec, bool planned) {
  spec.add_command("train");
  spec.set_working_dir("/work");
  spec.mutable_grace()->set_seconds(2);
  engine::Submitted submitted{++last_job_, std::move(spec), std::nullopt, "train", "/out"};
  if (planned) {
    auto plan = plan::MakePlan(submitted.spec);
    if (!plan.ok()) violations_.push_back(std::string(plan.status().message()));
    if (plan.ok()) submitted.plan = *std::move(plan);
  }
  Handle(std::move(submitted));
  return last_job_;
}

uint64_t Simulation::CheckHosts(const std::vector<std::string>& hosts) {
  v1::JobSpec spec;
  for (const auto& name : hosts) spec.mutable_inventory()->add_hosts()->set_host(name);
  Handle(engine::CheckRequested{++last_check_, std::move(spec), std::nullopt, std::nullopt});
  return last_check_;
}

void Simulation::Stop(uint64_t job, std::optional<engine::milliseconds> grace) {
  Handle(engine::StopRequested{job, grace});
}

void Simulation::Handle(What what) {
  now_ns += 1'000'000;
  engine::Step step = engine::Reduce(std::move(state_), {now_ns, std::move(what)});
  state_ = std::move(step.state);
  for (const auto& [id, job] : state_.jobs) jobs_[id] = job;
  // As the runtime does: durable first, then the rest in order.
  for (const auto& action : step.actions) Persist(action);
  for (const auto& action : step.actions) Perform(action);
  Check();
}

void Simulation::Persist(const engine::Action& action) {
  if (const auto* job = std::get_if<engine::PersistJob>(&action)) {
    JobRun durable = engine::Durable(state_.jobs.at(job->job));
    durable.ranks = std::move(store_[job->job].ranks);
    store_[job->job] = std::move(durable);
  } else if (const auto* rank = std::get_if<engine::PersistRank>(&action)) {
    const JobRun& run = state_.jobs.at(rank->job);
    store_[rank->job].ranks.resize(run.ranks.size());
    store_[rank->job].ranks[rank->rank] = run.ranks[rank->rank];
  } else if (const auto* emit = std::get_if<engine::Emit>(&action)) {
    auto& events = events_[emit->job];
    if (emit->event.sequence() != events.size() + 1) violations_.push_back("gap in the events");
    events.push_back(emit->event);
    store_[emit->job].last_sequence = emit->event.sequence();
  } else if (const auto* forget = std::get_if<engine::Forget>(&action)) {
    store_.erase(forget->job);
  } else if (const auto* checks = std::get_if<engine::RememberChecks>(&action)) {
    for (const auto& check : checks->nodes) remembered_[check.host()] = check;
  } else if (const auto* done = std::get_if<engine::CheckDone>(&action)) {
    if (!checks_done_.emplace(done->id, done->response).second)
      violations_.push_back("a check ended twice");
  }
}

void Simulation::Perform(const engine::Action& action) {
  if (const auto* connect = std::get_if<engine::Connect>(&action)) {
    HostSim& host = hosts_.at(connect->host.host());
    host.dialled = true;
    host.up = false;
    host.down.clear();
    host.up_queue.clear();
  } else if (const auto* disconnect = std::get_if<engine::Disconnect>(&action)) {
    hosts_.at(disconnect->host).dialled = false;
    hosts_.at(disconnect->host).up = false;
  } else if (const auto* send = std::get_if<engine::Send>(&action)) {
    HostSim& host = hosts_.at(send->host);
    if (!host.up) violations_.push_back("sent to a host whose link is down");
    host.down.push_back(send->message);
  } else if (const auto* start = std::get_if<engine::StartTimer>(&action)) {
    timers_.insert(start->key);
  } else if (const auto* cancel = std::get_if<engine::CancelTimer>(&action)) {
    timers_.erase(cancel->key);
  } else if (const auto* open = std::get_if<engine::OpenLogs>(&action)) {
    logs_open_.insert(open->job);
  } else if (const auto* abandon = std::get_if<engine::AbandonLogs>(&action)) {
    abandoned_[abandon->job].insert(abandon->host);
  } else if (const auto* finish = std::get_if<engine::Finish>(&action)) {
    if (!finished_.insert(finish->job).second) violations_.push_back("a job finished twice");
    CheckEnd(jobs_.at(finish->job));
  } else if (const auto* illegal = std::get_if<engine::ReportIllegal>(&action)) {
    violations_.push_back(illegal->message);
  }
}

// A job that says "clean" must be right about every node.
void Simulation::CheckEnd(const JobRun& job) {
  const v1::Outcome& outcome = *job.outcome;
  const auto violation = [&](const std::string& text) {
    violations_.push_back(absl::StrCat("job ", job.id, " (", outcome.message(), "): ", text));
  };
  if (outcome.message().empty()) violation("no message");
  if (outcome.cause() == v1::CAUSE_RANK_FAILED) {
    if (!outcome.has_rank() || outcome.code() != job.ranks[outcome.rank()].exit().code())
      violation("not the rank's code");
  } else if (outcome.code() != engine::CodeOf(outcome.cause())) {
    violation("code and cause differ");
  }
  const bool ok = outcome.cause() == v1::CAUSE_OK;
  const bool stopped = outcome.cause() == v1::CAUSE_STOPPED_BY_USER;
  if (ok != (job.state == v1::JOB_STATE_SUCCEEDED)) violation("state and cause differ");
  if (stopped != (job.state == v1::JOB_STATE_STOPPED)) violation("state and cause differ");
  if (!ok && !stopped) return;
  const std::string attempt = absl::StrCat(state_.controller_id, "/", job.id, "/", job.attempt);
  for (const auto& node : job.nodes) {
    for (const auto& [key, rank] : hosts_.at(node.host.host()).node.Running()) {
      if (key == attempt) violation(absl::StrCat("rank ", rank, " still runs"));
    }
  }
  for (const auto& rank : job.ranks) {
    if (ok && (rank.state() != v1::RANK_STATE_EXITED || rank.exit().code() != 0))
      violation("a rank did not exit with 0");
  }
}

void Simulation::Check() {
  std::map<std::string, uint64_t> users;
  for (const auto& [id, job] : state_.jobs) {
    if (IsTerminal(job.state) || job.state == v1::JOB_STATE_QUEUED) continue;
    for (const auto& node : job.nodes) {
      if (!users.emplace(node.host.host(), id).second)
        violations_.push_back("two jobs use " + node.host.host());
    }
    // Started everywhere or nowhere: no node is told to run while another one has not prepared.
    const bool any_running = std::any_of(job.nodes.begin(), job.nodes.end(), [](const auto& node) {
      return node.goal == v1::GOAL_RUNNING;
    });
    const bool any_preparing =
        std::any_of(job.nodes.begin(), job.nodes.end(),
                    [](const auto& node) { return node.goal == v1::GOAL_PREPARED; });
    if (any_running && any_preparing) violations_.push_back("started on some nodes only");
  }
}

void Simulation::Restart() {
  state_.jobs.clear();
  state_.links.clear();
  state_.last_probe_id = 0;
  timers_.clear();
  logs_open_.clear();
  for (auto& [name, host] : hosts_) {
    host.dialled = host.up = false;
    host.down.clear();
    host.up_queue.clear();
  }
  engine::Recovered recovered;
  for (const auto& [id, job] : store_) recovered.jobs.push_back(engine::Durable(job));
  Handle(std::move(recovered));
}

void Simulation::OpenLink(const std::string& name) {
  HostSim& host = hosts_.at(name);
  host.up = true;
  host.down.clear();
  host.up_queue.clear();
  for (auto& report : host.node.ReportAll())
    *host.up_queue.emplace_back().mutable_observed() = std::move(report);
  Handle(engine::LinkUp{name, host.node.Hello()});
}

void Simulation::GreetAgain(const std::string& host) {
  Handle(engine::LinkUp{host, hosts_.at(host).node.Hello()});
}

void Simulation::BreakLink(const std::string& name) {
  HostSim& host = hosts_.at(name);
  host.up = false;
  host.down.clear();
  host.up_queue.clear();
  Handle(engine::LinkLost{name, absl::UnavailableError("connection refused")});
}

void Simulation::Report(const std::string& name, v1::Observed observed) {
  HostSim& host = hosts_.at(name);
  if (host.up) *host.up_queue.emplace_back().mutable_observed() = std::move(observed);
}

void Simulation::Receive(const std::string& name) {
  HostSim& host = hosts_.at(name);
  const v1::AttachRequest message = std::move(host.down.front());
  host.down.pop_front();
  if (message.has_desired()) Report(name, host.node.Apply(message.desired()));
  if (message.has_probe()) {
    auto answer = host.node.AnswerUnlessSilent(message.probe());
    if (!answer) return;
    auto result = *std::move(answer);
    result.set_realtime_ns(now_ns);
    *host.up_queue.emplace_back().mutable_probe_result() = std::move(result);
  }
}

void Simulation::Deliver(const std::string& name) {
  HostSim& host = hosts_.at(name);
  v1::AttachResponse message = std::move(host.up_queue.front());
  host.up_queue.pop_front();
  if (message.has_observed()) Handle(engine::NodeObserved{name, message.observed()});
  if (message.has_probe_result()) Handle(engine::ProbeAnswered{name, message.probe_result()});
}

bool Simulation::LogsCanComplete(const JobRun& job) const {
  if (!logs_open_.contains(job.id) || !IsTerminal(job.state) || job.logs_complete) return false;
  return std::all_of(job.nodes.begin(), job.nodes.end(), [&](const auto& node) {
    const auto it = abandoned_.find(job.id);
    return node.end || (it != abandoned_.end() && it->second.contains(node.host.host()));
  });
}

void Simulation::AddLinkMoves(const std::string& name, bool with_faults,
                              std::vector<std::function<void()>>& moves) {
  HostSim& host = hosts_.at(name);
  if (host.dialled && !host.up && !host.cut) moves.push_back([this, name] { OpenLink(name); });
  if (host.up && !host.down.empty()) moves.push_back([this, name] { Receive(name); });
  if (host.up && !host.up_queue.empty()) moves.push_back([this, name] { Deliver(name); });
  for (const auto& step : host.node.Steps()) {
    moves.push_back([this, name, step] { Report(name, hosts_.at(name).node.Take(step)); });
  }
  if (!with_faults) return;
  if (host.dialled) moves.push_back([this, name] { BreakLink(name); });
  for (const auto& [attempt, rank] : host.node.Running()) {
    for (const int32_t code : {0, 0, 3}) {
      moves.push_back([this, name, attempt = attempt, rank = rank, code] {
        Report(name, hosts_.at(name).node.Exit(attempt, rank, code, 0, now_ns));
      });
    }
  }
}

std::vector<std::function<void()>> Simulation::Moves(bool with_faults) {
  std::vector<std::function<void()>> moves;
  for (auto& [name, host] : hosts_) AddLinkMoves(name, with_faults, moves);
  for (const auto& [id, job] : state_.jobs) {
    if (!LogsCanComplete(job)) continue;
    moves.push_back(
        [this, id = engine::MakeAttemptId(state_, job)] { Handle(engine::LogsComplete{id}); });
  }
  if (!with_faults) return moves;
  for (const auto& key : timers_) {
    moves.push_back([this, key] {
      timers_.erase(key);
      Handle(engine::TimerFired{key});
    });
  }
  return moves;
}

void Simulation::Settle() {
  for (auto moves = Moves(false); !moves.empty(); moves = Moves(false)) moves.front()();
}

void Simulation::PlayToTheEnd() {
  constexpr int kEnough = 1000;
  for (auto& [name, host] : hosts_) host.cut = false;
  for (int i = 0; i < kEnough; ++i) {
    Settle();
    bool moved = false;
    for (auto& [name, host] : hosts_) {
      for (const auto& [attempt, rank] : host.node.Running()) {
        if (host.node.faults.survives_stop.contains(rank)) continue;
        Report(name, host.node.Exit(attempt, rank, 0, 0, now_ns));
        moved = true;
      }
    }
    if (moved) continue;
    if (timers_.empty()) return;
    const engine::TimerKey key = *timers_.begin();
    timers_.erase(timers_.begin());
    Handle(engine::TimerFired{key});
  }
  violations_.push_back("it never comes to rest");
}

void Simulation::FireTimer(engine::TimerKind kind) {
  const auto it = std::find_if(timers_.begin(), timers_.end(),
                               [&](const auto& key) { return key.kind == kind; });
  if (it == timers_.end()) {
    violations_.push_back("no such timer is set");
    return;
  }
  const engine::TimerKey key = *it;
  timers_.erase(it);
  Handle(engine::TimerFired{key});
}

void Simulation::ExitRank(uint64_t job, uint32_t rank, int32_t code, int32_t signal) {
  const JobRun& run = jobs_.at(job);
  const std::string host = run.nodes[run.plan->ranks(static_cast<int>(rank)).node()].host.host();
  const std::string attempt = absl::StrCat(state_.controller_id, "/", job, "/", run.attempt);
  Report(host, hosts_.at(host).node.Exit(attempt, rank, code, signal, now_ns));
}

void Simulation::Cut(const std::string& host) {
  hosts_.at(host).cut = true;
  if (hosts_.at(host).dialled) BreakLink(host);
}

void Simulation::Heal(const std::string& host) {
  hosts_.at(host).cut = false;
}

void Simulation::Refuse(const std::string& host) {
  Handle(engine::LinkLost{host, absl::NotFoundError(host + ": connection refused")});
}

bool Simulation::HasEvent(uint64_t job, const std::string& text) {
  return std::any_of(events_[job].begin(), events_[job].end(), [&](const auto& event) {
    return event.text().find(text) != std::string::npos;
  });
}

bool Simulation::HasTimer(engine::TimerKind kind) const {
  return std::any_of(timers_.begin(), timers_.end(),
                     [&](const auto& key) { return key.kind == kind; });
}

}  // namespace muster::testing
