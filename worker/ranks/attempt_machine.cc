#include "worker/ranks/attempt_machine.h"

#include <signal.h>

#include <algorithm>

#include "common/utf8.h"
#include "worker/ranks/reconcile.h"

namespace muster::ranks {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kDefaultGrace(30);
constexpr std::chrono::hours kMaxGrace(24 * 30);
constexpr char kQuotaReason[] = "its node had to drop them; its log has markers";
// Of all ranks together, or Observed outgrows a message. The first to fail keep theirs.
constexpr size_t kMaxErrorRecords = 1 << 20;

nanoseconds Grace(const v1::Desired& wish) {
  if (!wish.has_grace()) return kDefaultGrace;
  if (wish.grace().seconds() < 0 || wish.grace().nanos() < 0) return nanoseconds(0);
  if (wish.grace().seconds() > seconds(kMaxGrace).count()) return kMaxGrace;
  return seconds(wish.grace().seconds()) + nanoseconds(wish.grace().nanos());
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

bool AttemptMachine::ProvedByShims() const {
  return std::all_of(record_.ranks().begin(), record_.ranks().end(), [this](const auto& rank) {
    return rank.state() == v1::RANK_STATE_EXITED && rank.exit().code() == 0 &&
           childless_.contains(rank.rank());
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
    const bool saving = record_.save_signal() != 0;
    act = PlanStop(Grace(wish));
    if (act) {
      record_.set_save_signal(wish.save_signal());
    } else if (saving && wish.save_signal() == 0) {  // nobody waits for the save any more
      record_.set_save_signal(0);
      act = record_.phase() == worker::END_PHASE_TERM;
    }
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
  unwritten_[number] = status.streams[0].lost + status.streams[1].lost + status.streams[2].lost;
  if (unwritten_[number] > 0) rank->set_lost_reason(ToValidUtf8(status.lost_error));
  NoteLoss(*rank);
  rank->set_log_waits(status.log_waits);
  rank->set_pid(static_cast<uint32_t>(status.rank_pid));
  rank->set_started_ns(status.started_ns);
  rank->set_stopped(status.stopped);
  const bool stopping = record_.goal() >= v1::GOAL_STOPPED;
  if (status.Ended()) {
    if (!HasEnded(*rank)) TakeExit(*rank, status);
    if (status.childless) childless_.insert(number);
  } else if (status.state == shim::ShimState::kPrepared) {
    rank->set_state(stopping ? v1::RANK_STATE_ABSENT : v1::RANK_STATE_PREPARED);
    if (stopping) {
      effects_.Command(number, shim::ShimCommand::kQuit);
    } else if (record_.goal() == v1::GOAL_RUNNING) {
      effects_.Command(number, shim::ShimCommand::kStart);
    }
  } else {
    const bool fresh = rank->state() != v1::RANK_STATE_RUNNING;
    const bool news = untold_.erase(number) > 0 || fresh;
    const uint32_t save_signal = record_.save_signal();
    rank->set_state(v1::RANK_STATE_RUNNING);
    // A start that was on its way when the stop came, or a shim that the last daemon may not have
    // told any more. The shim signals each process once.
    if (fresh && stopping && save_signal != 0) {
      effects_.SignalRank(number, static_cast<int>(save_signal));
    } else if (news && stopping && save_signal == 0) {
      effects_.Command(number, shim::ShimCommand::kTerminate);
    }
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
  rank.set_error(ToValidUtf8(status.error));
  v1::RankExit* exit = rank.mutable_exit();
  exit->set_code(status.exit_code);
  exit->set_signal(status.signal);
  exit->set_core_dumped(status.core_dumped);
  exit->set_ended_ns(status.ended_ns);
  exit->set_escalated(killed);
  size_t kept = 0;
  for (const v1::RankStatus& other : record_.ranks()) kept += other.exit().error_record().size();
  std::string error_record = effects_.ErrorRecord(rank.rank());
  if (kept + error_record.size() <= kMaxErrorRecords) {
    exit->set_error_record(std::move(error_record));
  }
  if (!ours && (status.exit_code != 0 || status.signal != 0)) {
    for (std::string& holder : effects_.PortHolders(rank.rank())) {
      exit->add_port_holders(ToValidUtf8(holder));
    }
  }
  record_.set_last_wait_order(record_.last_wait_order() + 1);
  exit->set_wait_order(record_.last_wait_order());
}

void AttemptMachine::NoteLoss(v1::RankStatus& rank) {
  const uint64_t dropped = dropped_[rank.rank()];
  rank.set_lost_bytes(unwritten_[rank.rank()] + dropped);
  if (dropped > 0 && rank.lost_reason().empty()) rank.set_lost_reason(kQuotaReason);
}

void AttemptMachine::SetDropped(uint32_t number, uint64_t bytes) {
  v1::RankStatus* rank = Find(number);
  dropped_[number] = bytes;
  const auto unwritten = unwritten_.find(number);
  // Until the shim has spoken, what was known stays.
  if (rank == nullptr || unwritten == unwritten_.end()) return;
  if (rank->lost_bytes() == unwritten->second + bytes) return;
  NoteLoss(*rank);
  effects_.Changed();
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

bool AttemptMachine::Decided() const {
  return Reached() || record_.phase() == worker::END_PHASE_DONE ||
         std::any_of(record_.ranks().begin(), record_.ranks().end(), [](const auto& rank) {
           return !rank.error().empty() || rank.exit().code() != 0;
         });
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
