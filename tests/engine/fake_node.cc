#include "tests/engine/fake_node.h"

#include <algorithm>
#include <utility>

namespace muster::testing {
namespace {

std::string KeyOf(const v1::AttemptId& id) {
  return id.controller_id() + "/" + id.job_id() + "/" + std::to_string(id.attempt());
}

bool HasEnded(const v1::RankStatus& rank) {
  return rank.state() == v1::RANK_STATE_EXITED || rank.state() == v1::RANK_STATE_KILLED;
}

}  // namespace

FakeNode::FakeNode(std::string host, std::string boot_id)
    : host_(std::move(host)), boot_id_(std::move(boot_id)) {}

v1::WorkerHello FakeNode::Hello() const {
  v1::WorkerHello hello;
  hello.set_protocol(1);
  hello.set_version("0.1.0");
  hello.set_node_name(host_);
  hello.set_boot_id(!faults.boot_id.empty() ? faults.boot_id
                    : boot_id_.empty()      ? "boot-" + host_
                                            : boot_id_);
  for (uint64_t i = 0; i < faults.devices.value_or(0); ++i)
    hello.add_devices()->set_index(static_cast<uint32_t>(i));
  return hello;
}

std::optional<v1::ProbeResult> FakeNode::AnswerUnlessSilent(const v1::Probe& probe) {
  if (faults.silent) return std::nullopt;
  return Answer(probe);
}

v1::ProbeResult FakeNode::Answer(const v1::Probe& probe) {
  v1::ProbeResult result;
  result.set_probe_id(probe.probe_id());
  if (faults.program_error.empty()) {
    result.set_program_path("/usr/bin/" + probe.program());
  } else {
    result.set_program_error(faults.program_error);
  }
  if (probe.want_port() && faults.port_error.empty()) result.set_port(29500);
  result.set_port_error(probe.want_port() ? faults.port_error : "");
  result.set_disk_free_bytes(uint64_t{1} << 40);
  for (const v1::NetworkPeer& peer : probe.network().connect()) {
    v1::PeerResult& reached = *result.mutable_network()->add_connected();
    reached.set_node(peer.node());
    reached.set_address(peer.address());
    if (faults.unreachable.contains(peer.node())) reached.set_error("connection refused");
  }
  if (probe.has_network()) result.mutable_network()->set_iface("eth-" + host_);
  ++probes_answered_;
  return result;
}

std::string FakeNode::Refusal(const v1::Desired& wish, const Attempt* attempt) const {
  if (attempt == nullptr) {
    return wish.goal() <= v1::GOAL_RUNNING && wish.ranks().empty() ? "the attempt is unknown here"
                                                                   : "";
  }
  if (wish.generation() < attempt->generation)
    return "the generation is older than the accepted one";
  if (wish.generation() == attempt->generation && wish.goal() != attempt->goal)
    return "generation was already used";
  if (wish.goal() < attempt->goal) return "goals only go forward";
  if (wish.goal() == v1::GOAL_FORGOTTEN && !attempt->end && !attempt->ranks.empty())
    return "a rank still lives";
  return "";
}

v1::Observed FakeNode::Apply(const v1::Desired& wish) {
  const auto found = attempts_.find(KeyOf(wish.id()));
  const std::string refusal = Refusal(wish, found == attempts_.end() ? nullptr : &found->second);
  if (!refusal.empty()) {
    v1::Observed observed;
    if (found != attempts_.end()) observed = Report(found->second);
    *observed.mutable_id() = wish.id();
    observed.set_refused(refusal);
    return observed;
  }
  Attempt& attempt = attempts_[KeyOf(wish.id())];
  const bool is_new = attempt.goal == v1::GOAL_UNSPECIFIED;
  attempt.id = wish.id();
  attempt.generation = wish.generation();
  attempt.goal = wish.goal();
  if (is_new) {
    for (const auto& spec : wish.ranks()) {
      specs_[spec.rank()] = spec;
      attempt.ranks[spec.rank()].set_rank(spec.rank());
      attempt.ranks[spec.rank()].set_state(v1::RANK_STATE_ABSENT);
    }
  }
  if (attempt.goal == v1::GOAL_STOPPED) {
    last_grace_seconds_ = static_cast<double>(wish.grace().seconds()) + wish.grace().nanos() / 1e9;
    for (auto& [number, rank] : attempt.ranks) {
      if (rank.state() == v1::RANK_STATE_PREPARED) rank.set_state(v1::RANK_STATE_ABSENT);
    }
  }
  if (attempt.goal == v1::GOAL_FORGOTTEN) attempt.ranks.clear();
  accepted_.push_back(v1::Goal_Name(wish.goal()).substr(5));
  return Report(attempt);
}

bool FakeNode::MayMove(const Attempt& attempt, const v1::RankStatus& rank) const {
  if (!rank.error().empty()) return false;
  switch (attempt.goal) {
    case v1::GOAL_PREPARED:
      return rank.state() == v1::RANK_STATE_ABSENT;
    case v1::GOAL_RUNNING:
      return rank.state() == v1::RANK_STATE_ABSENT || rank.state() == v1::RANK_STATE_PREPARED;
    case v1::GOAL_STOPPED:
      return rank.state() == v1::RANK_STATE_RUNNING && !faults.survives_stop.contains(rank.rank());
    default:
      return false;
  }
}

bool FakeNode::MayEnd(const Attempt& attempt) const {
  if (attempt.end) return false;
  if (attempt.goal != v1::GOAL_RUNNING && attempt.goal != v1::GOAL_STOPPED) return false;
  return std::all_of(attempt.ranks.begin(), attempt.ranks.end(), [&](const auto& entry) {
    const v1::RankStatus& rank = entry.second;
    if (attempt.goal == v1::GOAL_RUNNING) return HasEnded(rank);
    return rank.state() != v1::RANK_STATE_RUNNING || faults.survives_stop.contains(rank.rank());
  });
}

std::vector<FakeNode::Step> FakeNode::Steps() const {
  std::vector<Step> steps;
  for (const auto& [key, attempt] : attempts_) {
    for (const auto& [number, rank] : attempt.ranks) {
      if (MayMove(attempt, rank)) steps.push_back({key, number});
    }
    if (MayEnd(attempt)) steps.push_back({key, std::nullopt});
  }
  return steps;
}

v1::Observed FakeNode::Take(const Step& step) {
  Attempt& attempt = attempts_.at(step.attempt);
  if (!step.rank) {
    attempt.end.emplace().set_verified(true);
    for (const auto& [number, rank] : attempt.ranks) {
      if (rank.state() != v1::RANK_STATE_RUNNING) continue;
      auto& survivor = *attempt.end->add_survivors();
      survivor.set_pid(1000 + number);
      survivor.set_command("stuck");
      survivor.set_state("D");
    }
    return Report(attempt);
  }
  v1::RankStatus& rank = attempt.ranks.at(*step.rank);
  if (rank.state() == v1::RANK_STATE_ABSENT) {
    if (faults.prepare_error.empty()) {
      rank.set_state(v1::RANK_STATE_PREPARED);
    } else {
      rank.set_error(faults.prepare_error);
    }
  } else if (rank.state() == v1::RANK_STATE_PREPARED) {
    if (faults.start_error.empty()) {
      rank.set_state(v1::RANK_STATE_RUNNING);
      rank.set_pid(1000 + rank.rank());
    } else {
      rank.set_state(v1::RANK_STATE_EXITED);
      rank.set_error(faults.start_error);
      rank.mutable_exit()->set_code(127);
      rank.mutable_exit()->set_wait_order(++attempt.wait_order);
    }
  } else {
    rank.set_state(v1::RANK_STATE_KILLED);
    rank.mutable_exit()->set_code(143);
    rank.mutable_exit()->set_signal(15);
    rank.mutable_exit()->set_wait_order(++attempt.wait_order);
  }
  return Report(attempt);
}

std::vector<v1::Observed> FakeNode::Settle() {
  std::map<std::string, v1::Observed> last;
  for (auto steps = Steps(); !steps.empty(); steps = Steps())
    last[steps.front().attempt] = Take(steps.front());
  std::vector<v1::Observed> reports;
  for (auto& [key, report] : last) reports.push_back(std::move(report));
  return reports;
}

v1::Observed FakeNode::Exit(const std::string& key, uint32_t number, int32_t code, int32_t signal,
                            int64_t ended_ns) {
  Attempt& attempt = attempts_.at(key);
  v1::RankStatus& rank = attempt.ranks.at(number);
  rank.set_state(v1::RANK_STATE_EXITED);
  rank.mutable_exit()->set_code(signal != 0 ? 128 + signal : code);
  rank.mutable_exit()->set_signal(signal);
  rank.mutable_exit()->set_ended_ns(ended_ns);
  rank.mutable_exit()->set_wait_order(++attempt.wait_order);
  return Report(attempt);
}

std::vector<std::pair<std::string, uint32_t>> FakeNode::Running() const {
  std::vector<std::pair<std::string, uint32_t>> running;
  for (const auto& [key, attempt] : attempts_) {
    for (const auto& [number, rank] : attempt.ranks) {
      if (rank.state() == v1::RANK_STATE_RUNNING) running.emplace_back(key, number);
    }
  }
  return running;
}

std::vector<v1::Observed> FakeNode::ReportAll() const {
  std::vector<v1::Observed> reports;
  for (const auto& [key, attempt] : attempts_) reports.push_back(Report(attempt));
  return reports;
}

v1::Observed FakeNode::Report(const Attempt& attempt) const {
  const auto all = [&](v1::RankState least) {
    return std::all_of(attempt.ranks.begin(), attempt.ranks.end(),
                       [&](const auto& entry) { return entry.second.state() >= least; });
  };
  v1::Observed observed;
  *observed.mutable_id() = attempt.id;
  observed.set_generation(attempt.generation);
  observed.set_goal(attempt.goal);
  observed.set_reached(attempt.goal == v1::GOAL_PREPARED  ? all(v1::RANK_STATE_PREPARED)
                       : attempt.goal == v1::GOAL_RUNNING ? all(v1::RANK_STATE_RUNNING)
                       : attempt.goal == v1::GOAL_STOPPED ? attempt.end.has_value()
                                                          : true);
  for (const auto& [number, rank] : attempt.ranks) *observed.add_ranks() = rank;
  if (attempt.end) *observed.mutable_end() = *attempt.end;
  return observed;
}

}  // namespace muster::testing
