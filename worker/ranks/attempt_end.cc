// The end of an attempt: the phases TERM, KILL and DONE of AttemptMachine.
#include <signal.h>

#include <algorithm>

#include "worker/ranks/attempt_machine.h"
#include "worker/ranks/reconcile.h"

namespace muster::ranks {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// What a process that outlived a job gets between SIGTERM and SIGKILL when no stop gives another
// grace.
constexpr seconds kLeftoverGrace(2);
// How long SIGKILL is repeated before survivors are named.
constexpr seconds kKillLimit(5);
// A tree that falls with its rank takes a few ms; what lives longer is a leftover.
constexpr milliseconds kSettle(100);
constexpr milliseconds kTermPoll(100);
constexpr milliseconds kKillPoll(50);

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

}  // namespace muster::ranks
