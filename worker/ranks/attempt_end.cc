// The end of an attempt: the phases TERM, KILL and DONE of AttemptMachine.
#include <signal.h>

#include <algorithm>
#include <utility>

#include "common/utf8.h"
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
// From when on in it the shims are not relied on: their processes are killed directly, and then
// they themselves.
constexpr seconds kKillDirectly(1);
constexpr seconds kKillShims(3);
// What the kernel said this long before the first failure may be its reason.
constexpr seconds kKernelBefore(60);
// A tree that falls with its rank takes a few ms; what lives longer is a leftover.
constexpr milliseconds kSettle(100);
constexpr milliseconds kTermPoll(100);
constexpr milliseconds kKillPoll(50);

v1::Survivor ToSurvivor(const Leftover& leftover) {
  v1::Survivor out;
  out.set_pid(static_cast<uint32_t>(leftover.pid));
  out.set_uid(leftover.uid);
  out.set_user(leftover.user);
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
      if (!record_.end().survivors().empty() || !record_.end().held().empty()) {
        EnterPhase(worker::END_PHASE_TERM, now);
        inspecting_ = false;
        inspection_.reset();
      }
      return false;
    default:
      return false;
  }
}

void AttemptMachine::SendSaveSignal() {
  for (v1::RankStatus& rank : *record_.mutable_ranks()) {
    if (rank.state() == v1::RANK_STATE_RUNNING) {
      effects_.SignalRank(rank.rank(), static_cast<int>(record_.save_signal()));
    } else if (!HasEnded(rank)) {
      effects_.Command(rank.rank(), shim::ShimCommand::kQuit);
      rank.set_state(v1::RANK_STATE_ABSENT);
    }
  }
}

void AttemptMachine::SendTerm() {
  effects_.WakeShims();
  if (record_.save_signal() != 0) {
    SendSaveSignal();
    return;
  }
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
  effects_.WakeShims();
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
  if (all_ended && !all_ended_) {
    all_ended_ = now;
    // The grace of a save is for the ranks; what they leave behind has none of it.
    if (record_.phase() == worker::END_PHASE_TERM && record_.save_signal() != 0) {
      EnterPhase(worker::END_PHASE_TERM, std::min(Deadline(), now + kSettle + kLeftoverGrace));
    }
  }
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
  } else if (all_ended && now < *all_ended_ + kSettle && !ProvedByShims()) {
    next_tick_ = *all_ended_ + kSettle;
    if (record_.phase() == worker::END_PHASE_TERM) next_tick_ = std::min(*next_tick_, Deadline());
  } else {
    Sweep(now);
  }
}

void AttemptMachine::Sweep(TimePoint now) {
  const bool killing = record_.phase() == worker::END_PHASE_KILL;
  // The kernel's word about each tree; a search would read all of /proc to say the same.
  ScanResult scan = ProvedByShims() ? ScanResult() : effects_.Scan();
  const bool over = AllEnded() && scan.processes.empty();
  if (over && !inspection_) {
    Inspect();
    return;
  }
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

void AttemptMachine::Inspect() {
  if (std::exchange(inspecting_, true)) return;
  std::optional<int64_t> since;
  for (const v1::RankStatus& rank : record_.ranks()) {
    const v1::RankExit& exit = rank.exit();
    const bool failed = rank.state() == v1::RANK_STATE_EXITED &&
                        (exit.code() != 0 || exit.signal() != 0 || exit.shim_lost());
    if (!failed) continue;
    const int64_t before = exit.ended_ns() - nanoseconds(kKernelBefore).count();
    since = std::min(since.value_or(before), before);
  }
  effects_.Inspect(since);
}

void AttemptMachine::OnInspected(Inspection inspection) {
  if (record_.phase() == worker::END_PHASE_DONE) return;
  inspection_ = std::move(inspection);
  Sweep(clock_.Now());
}

void AttemptMachine::EndLeftovers(const std::vector<Leftover>& leftovers) {
  const bool killing = record_.phase() == worker::END_PHASE_KILL;
  const auto killing_for = clock_.Now() - (Deadline() - kKillLimit);
  const bool directly = killing && killing_for >= kKillDirectly;
  bool ask_shims = killing;
  for (const Leftover& leftover : leftovers) {
    const bool fresh = terminated_.emplace(leftover.pid, leftover.start_ticks).second;
    if (leftover.in_shim_tree && !directly) {
      ask_shims = ask_shims || fresh;
    } else if (killing || fresh) {
      effects_.Signal(leftover, killing ? SIGKILL : SIGTERM);
    }
  }
  if (killing) effects_.KillCgroup();
  if (killing && killing_for >= kKillShims) {
    for (const v1::RankStatus& rank : record_.ranks()) {
      if (!HasEnded(rank) && live_shims_.contains(rank.rank())) effects_.KillShim(rank.rank());
    }
  }
  if (ask_shims) {
    CommandAll(killing ? shim::ShimCommand::kKill : shim::ShimCommand::kTerminate);
  }
}

void AttemptMachine::Finish(const ScanResult& last) {
  v1::EndReport& end = *record_.mutable_end();
  end.Clear();
  const Inspection found = inspection_.value_or(Inspection());
  end.set_verified(last.unverified.empty() && found.unverified.empty() &&
                   (AllEnded() || !last.processes.empty()));
  for (const std::string& why : {last.unverified, found.unverified}) {
    if (!why.empty()) end.add_notes(why);
  }
  for (const std::string& held : found.held) end.add_held(ToValidUtf8(held));
  for (const std::string& note : found.notes) end.add_notes(ToValidUtf8(note));
  if (found.kernel) *end.mutable_kernel() = *found.kernel;
  for (const Leftover& left : last.processes) {
    *end.add_survivors() = ToSurvivor(left);
    swept_.erase({left.pid, left.start_ticks});
  }
  for (const auto& [key, left] : swept_) *end.add_swept() = ToSurvivor(left);
  for (const v1::RankStatus& rank : record_.ranks()) {
    if (HasEnded(rank) || !live_shims_.contains(rank.rank())) continue;
    end.add_notes("rank " + std::to_string(rank.rank()) + ": its muster-shim gives no answer");
  }
  EnterPhase(worker::END_PHASE_DONE, clock_.Now());
  effects_.Save(record_);
  CommandAll(shim::ShimCommand::kQuit);
  effects_.Ended();
  effects_.Changed();
}

}  // namespace muster::ranks
