#include "worker/ranks/attempt_machine.h"

#include <signal.h>

#include <algorithm>

#include "worker/ranks/utf8.h"

namespace muster::ranks {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kDefaultGrace(30);
constexpr std::chrono::hours kMaxGrace(24 * 30);
// What a process that outlived a job gets between SIGTERM and SIGKILL when no stop gives another
// grace.
constexpr seconds kLeftoverGrace(2);
// How long SIGKILL is repeated before survivors are named.
constexpr seconds kKillLimit(5);
// A tree that falls with its rank takes a few ms; what lives longer is a leftover.
constexpr milliseconds kSettle(100);
constexpr milliseconds kTermPoll(100);
constexpr milliseconds kKillPoll(50);

bool HasEnded(const v1::RankStatus& rank) {
  return rank.state() == v1::RANK_STATE_EXITED || rank.state() == v1::RANK_STATE_KILLED;
}

nanoseconds Grace(const v1::Desired& wish) {
  if (!wish.has_grace()) return kDefaultGrace;
  if (wish.grace().seconds() < 0 || wish.grace().nanos() < 0) return nanoseconds(0);
  if (wish.grace().seconds() > seconds(kMaxGrace).count()) return kMaxGrace;
  return seconds(wish.grace().seconds()) + nanoseconds(wish.grace().nanos());
}

v1::Survivor ToSurvivor(const Leftover& leftover) {
  v1::Survivor out;
  out.set_pid(static_cast<uint32_t>(leftover.pid));
  out.set_uid(leftover.uid);
  out.set_command(leftover.command);
  out.set_state(std::string(1, leftover.state));
  out.set_wait_channel(leftover.wait_channel);
  if (leftover.rank) out.set_rank(*leftover.rank);
  return out;
}

}  // namespace

AttemptMachine::AttemptMachine(worker::AttemptRecord record, AttemptEffects& effects,
                               const Clock& clock)
    : record_(std::move(record)), effects_(effects), clock_(clock) {}

v1::RankStatus* AttemptMachine::Find(uint32_t rank) {
  for (v1::RankStatus& status : *record_.mutable_ranks()) {
    if (status.rank() == rank) return &status;
  }
  return nullptr;
}

bool AttemptMachine::AllEnded() const {
  return std::all_of(record_.ranks().begin(), record_.ranks().end(), [this](const auto& rank) {
    return HasEnded(rank) ||
           (rank.state() == v1::RANK_STATE_ABSENT && !live_shims_.contains(rank.rank()));
  });
}

void AttemptMachine::Apply(const v1::Desired& wish) {
  const bool is_new = record_.goal() == v1::GOAL_UNSPECIFIED;
  record_.set_generation(wish.generation());
  record_.set_goal(wish.goal());
  if (is_new) {
    *record_.mutable_id() = wish.id();
    for (const v1::RankSpec& spec : wish.ranks()) {
      v1::RankStatus* rank = record_.add_ranks();
      rank->set_rank(spec.rank());
      rank->set_state(v1::RANK_STATE_ABSENT);
    }
    std::sort(record_.mutable_ranks()->begin(), record_.mutable_ranks()->end(),
              [](const auto& a, const auto& b) { return a.rank() < b.rank(); });
  }
  bool act = false;
  if (wish.goal() == v1::GOAL_STOPPED) {
    record_.set_stop_reason(wish.stop_reason());
    act = PlanStop(Grace(wish));
  }
  effects_.Save(record_);
  if (act) SendTerm();
  if (wish.goal() <= v1::GOAL_RUNNING) {
    if (is_new) {
      for (v1::RankStatus& rank : *record_.mutable_ranks()) SpawnRank(rank);
    }
    if (wish.goal() == v1::GOAL_RUNNING) {
      for (const v1::RankStatus& rank : record_.ranks()) {
        if (rank.state() == v1::RANK_STATE_PREPARED) {
          effects_.Command(rank.rank(), shim::ShimCommand::kStart);
        }
      }
    }
  }
  effects_.Changed();
  Tick();
}

void AttemptMachine::SpawnRank(v1::RankStatus& rank) {
  const std::string error = effects_.Spawn(rank.rank());
  if (error.empty()) {
    live_shims_.insert(rank.rank());
  } else {
    rank.set_error(error);
  }
}

void AttemptMachine::Respawn(uint32_t rank) {
  v1::RankStatus* status = Find(rank);
  if (status != nullptr && record_.goal() <= v1::GOAL_RUNNING) SpawnRank(*status);
}

void AttemptMachine::OnStatus(uint32_t number, const shim::ShimStatus& status) {
  v1::RankStatus* rank = Find(number);
  if (rank == nullptr) return;
  const std::string before = rank->SerializeAsString();
  if (status.streams[0].lost + status.streams[1].lost + status.streams[2].lost > 0) {
    lost_bytes_[number] =
        std::to_string(status.streams[0].lost + status.streams[1].lost + status.streams[2].lost) +
        " bytes of output lost: " + ToUtf8(status.lost_error);
  }
  rank->set_pid(static_cast<uint32_t>(status.rank_pid));
  rank->set_started_ns(status.started_ns);
  rank->set_stopped(status.stopped);
  const bool stopping = record_.goal() >= v1::GOAL_STOPPED;
  if (status.Ended()) {
    if (!HasEnded(*rank)) TakeExit(*rank, status);
  } else if (status.state == shim::ShimState::kPrepared) {
    rank->set_state(stopping ? v1::RANK_STATE_ABSENT : v1::RANK_STATE_PREPARED);
    if (stopping) {
      effects_.Command(number, shim::ShimCommand::kQuit);
    } else if (record_.goal() == v1::GOAL_RUNNING) {
      effects_.Command(number, shim::ShimCommand::kStart);
    }
  } else {
    const bool news = rank->state() != v1::RANK_STATE_RUNNING || untold_.erase(number) > 0;
    rank->set_state(v1::RANK_STATE_RUNNING);
    // A start that was on its way when the stop came, or a shim that the last daemon may not have
    // told any more. The shim signals each process once.
    if (news && stopping) effects_.Command(number, shim::ShimCommand::kTerminate);
    if (news && record_.phase() == worker::END_PHASE_KILL) {
      effects_.Command(number, shim::ShimCommand::kKill);
    }
  }
  if (rank->SerializeAsString() != before) effects_.Changed();
  if (record_.phase() == worker::END_PHASE_DONE) {
    effects_.Command(number, shim::ShimCommand::kQuit);
  }
  Tick();
}

void AttemptMachine::TakeExit(v1::RankStatus& rank, const shim::ShimStatus& status) {
  // A busy shim may find its rank already ended by the cgroup's kill.
  const bool killed =
      status.kill_sent || (record_.phase() == worker::END_PHASE_KILL && status.signal == SIGKILL);
  const bool ours = status.term_sent || killed;
  rank.set_state(ours ? v1::RANK_STATE_KILLED : v1::RANK_STATE_EXITED);
  rank.set_error(ToUtf8(status.error));
  v1::RankExit* exit = rank.mutable_exit();
  exit->set_code(status.exit_code);
  exit->set_signal(status.signal);
  exit->set_core_dumped(status.core_dumped);
  exit->set_ended_ns(status.ended_ns);
  exit->set_escalated(killed);
  exit->set_error_record(effects_.ErrorRecord(rank.rank()));
  record_.set_last_wait_order(record_.last_wait_order() + 1);
  exit->set_wait_order(record_.last_wait_order());
}

void AttemptMachine::OnGone(uint32_t number, const std::optional<shim::ShimStatus>& last) {
  v1::RankStatus* rank = Find(number);
  live_shims_.erase(number);
  if (rank == nullptr) return;
  if (last && last->Ended()) {
    OnStatus(number, *last);
    return;
  }
  if (rank->state() == v1::RANK_STATE_RUNNING) {
    shim::ShimStatus lost;
    lost.exit_code = 128 + SIGKILL;
    lost.signal = SIGKILL;
    lost.ended_ns = clock_.RealtimeNs();
    lost.error = "the rank's shim died, and the rank with it";
    TakeExit(*rank, lost);
    rank->mutable_exit()->set_shim_lost(true);
  } else if (!HasEnded(*rank)) {
    rank->set_state(v1::RANK_STATE_ABSENT);
    if (record_.goal() <= v1::GOAL_RUNNING && rank->error().empty()) {
      rank->set_error(
          "the rank's shim died before the rank was started; see shim.log in its folder");
    }
  }
  effects_.Save(record_);
  effects_.Changed();
  Tick();
}

AttemptMachine::TimePoint AttemptMachine::Deadline() const {
  return TimePoint(nanoseconds(record_.deadline_ns()));
}

void AttemptMachine::EnterPhase(worker::EndPhase phase, TimePoint deadline) {
  record_.set_phase(phase);
  record_.set_deadline_ns(nanoseconds(deadline.time_since_epoch()).count());
}

void AttemptMachine::CommandAll(shim::ShimCommand command) {
  for (const uint32_t rank : live_shims_) effects_.Command(rank, command);
}

bool AttemptMachine::PlanStop(nanoseconds grace) {
  const TimePoint now = clock_.Now();
  switch (record_.phase()) {
    case worker::END_PHASE_NONE:
      EnterPhase(worker::END_PHASE_TERM, now + grace);
      return true;
    case worker::END_PHASE_TERM:
      // A later wish can only make it shorter.
      EnterPhase(worker::END_PHASE_TERM, std::min(Deadline(), now + grace));
      return false;
    case worker::END_PHASE_DONE:
      // Asked again about survivors: one more try to end them.
      if (!record_.end().survivors().empty()) EnterPhase(worker::END_PHASE_TERM, now);
      return false;
    default:
      return false;
  }
}

void AttemptMachine::SendTerm() {
  for (v1::RankStatus& rank : *record_.mutable_ranks()) {
    if (rank.state() == v1::RANK_STATE_RUNNING) {
      effects_.Command(rank.rank(), shim::ShimCommand::kTerminate);
    } else if (!HasEnded(rank)) {
      effects_.Command(rank.rank(), shim::ShimCommand::kQuit);
      rank.set_state(v1::RANK_STATE_ABSENT);
    }
  }
  // What a lost shim left behind is in nobody's tree.
  for (const Leftover& leftover : effects_.Scan().processes) {
    if (!leftover.in_shim_tree && terminated_.emplace(leftover.pid, leftover.start_ticks).second) {
      effects_.Signal(leftover, SIGTERM);
    }
  }
}

void AttemptMachine::EnterKill() {
  EnterPhase(worker::END_PHASE_KILL, clock_.Now() + kKillLimit);
  effects_.Save(record_);
  // The shims first, so that they know who ended their ranks; the cgroup follows with the first
  // look.
  CommandAll(shim::ShimCommand::kKill);
  next_tick_ = clock_.Now() + kKillPoll;
}

void AttemptMachine::Tick() {
  next_tick_.reset();
  const TimePoint now = clock_.Now();
  const bool all_ended = AllEnded();
  if (!all_ended) all_ended_.reset();
  if (all_ended && !all_ended_) all_ended_ = now;
  if (record_.phase() == worker::END_PHASE_NONE) {
    if (record_.goal() < v1::GOAL_RUNNING || !all_ended) return;
    EnterPhase(worker::END_PHASE_TERM, now + kSettle + kLeftoverGrace);
    effects_.Save(record_);
  }
  if (record_.phase() == worker::END_PHASE_TERM && now >= Deadline()) {
    EnterKill();
    return;
  }
  if (record_.phase() == worker::END_PHASE_DONE) return;
  if (record_.phase() == worker::END_PHASE_TERM && !all_ended) {
    next_tick_ = Deadline();
  } else if (all_ended && now < *all_ended_ + kSettle) {
    next_tick_ = *all_ended_ + kSettle;
    if (record_.phase() == worker::END_PHASE_TERM) next_tick_ = std::min(*next_tick_, Deadline());
  } else {
    Sweep(now);
  }
}

void AttemptMachine::Sweep(TimePoint now) {
  const bool killing = record_.phase() == worker::END_PHASE_KILL;
  ScanResult scan = effects_.Scan();
  const bool over = AllEnded() && scan.processes.empty();
  if (over || (killing && now >= Deadline())) {
    Finish(scan);
    return;
  }
  if (AllEnded()) {
    for (const Leftover& left : scan.processes) {
      swept_.emplace(std::make_pair(left.pid, left.start_ticks), left);
    }
  }
  EndLeftovers(scan.processes);
  next_tick_ = killing ? now + kKillPoll : std::min(now + kTermPoll, Deadline());
}

void AttemptMachine::EndLeftovers(const std::vector<Leftover>& leftovers) {
  const bool killing = record_.phase() == worker::END_PHASE_KILL;
  bool ask_shims = killing;
  for (const Leftover& leftover : leftovers) {
    const bool fresh = terminated_.emplace(leftover.pid, leftover.start_ticks).second;
    if (leftover.in_shim_tree) {
      ask_shims = ask_shims || fresh;
    } else if (killing || fresh) {
      effects_.Signal(leftover, killing ? SIGKILL : SIGTERM);
    }
  }
  if (killing) effects_.KillCgroup();
  if (ask_shims) {
    CommandAll(killing ? shim::ShimCommand::kKill : shim::ShimCommand::kTerminate);
  }
}

void AttemptMachine::Finish(const ScanResult& last) {
  v1::EndReport& end = *record_.mutable_end();
  end.Clear();
  end.set_verified(last.unverified.empty());
  if (!last.unverified.empty()) end.add_notes(last.unverified);
  for (const Leftover& left : last.processes) {
    *end.add_survivors() = ToSurvivor(left);
    swept_.erase({left.pid, left.start_ticks});
  }
  for (const auto& [key, left] : swept_) *end.add_swept() = ToSurvivor(left);
  for (const auto& [rank, text] : lost_bytes_) {
    end.add_notes("rank " + std::to_string(rank) + ": " + text);
  }
  EnterPhase(worker::END_PHASE_DONE, clock_.Now());
  effects_.Save(record_);
  CommandAll(shim::ShimCommand::kQuit);
  effects_.Ended();
  effects_.Changed();
}

void AttemptMachine::MarkForgotten() {
  record_.set_forgotten_ns(clock_.RealtimeNs());
  record_.clear_ranks();
  effects_.Save(record_);
  effects_.Changed();
}

bool AttemptMachine::Reached() const {
  const auto all = [this](auto&& test) {
    return std::all_of(record_.ranks().begin(), record_.ranks().end(), test);
  };
  switch (record_.goal()) {
    case v1::GOAL_PREPARED:
      return all([](const auto& rank) { return rank.state() >= v1::RANK_STATE_PREPARED; });
    case v1::GOAL_RUNNING:
      return all([](const auto& rank) { return rank.state() >= v1::RANK_STATE_RUNNING; });
    case v1::GOAL_STOPPED:
      return record_.phase() == worker::END_PHASE_DONE && AllEnded();
    case v1::GOAL_FORGOTTEN:
      return record_.forgotten_ns() != 0;
    default:
      return false;
  }
}

v1::Observed AttemptMachine::Observe() const {
  v1::Observed out;
  *out.mutable_id() = record_.id();
  out.set_generation(record_.generation());
  out.set_goal(record_.goal());
  out.set_reached(Reached());
  *out.mutable_ranks() = record_.ranks();
  if (record_.phase() == worker::END_PHASE_DONE) *out.mutable_end() = record_.end();
  return out;
}

}  // namespace muster::ranks
