#include "worker/daemon/attempt_runner.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "worker/ranks/reconcile.h"
#include "worker/ranks/sweeper.h"
#include "worker/stage/versions.h"

namespace muster::worker {
namespace {

using std::chrono::milliseconds;

// Changes within this time go up in one Observed, and log chunks one after the other.
constexpr milliseconds kCoalesce(10);
// The same for changes on the way to what the controller waits for.
constexpr milliseconds kCoalesceOnTheWay(50);
// A crash costs at most this much of acknowledged log sent twice.
constexpr milliseconds kAckInterval(500);
constexpr std::chrono::seconds kSaveAgain(1);
constexpr size_t kMaxErrorRecord = 64 << 10;

// Start times in /proc count these ticks since boot, suspend included.
uint64_t TicksSinceBoot() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  const auto hz = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  return static_cast<uint64_t>(now.tv_sec) * hz +
         static_cast<uint64_t>(now.tv_nsec) * hz / 1'000'000'000;
}

// The head is where rank 0 lives: it listens on MASTER_PORT.
void NoteRendezvous(const v1::RankSpec& first, AttemptRecord& record) {
  if (first.rank() != 0) return;
  for (const v1::EnvVar& variable : first.env()) {
    if (variable.name() == "MASTER_ADDR") record.set_head_address(variable.value());
    if (variable.name() == "MASTER_PORT") {
      record.set_head_port(
          static_cast<uint32_t>(std::strtoul(variable.value().c_str(), nullptr, 10)));
    }
  }
}

std::string Marker(const NodeContext& node, const v1::AttemptId& id) {
  return ranks::AttemptName(id) + "@" + node.tag;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AttemptRunner>> AttemptRunner::Create(const NodeContext& node,
                                                                     const v1::Desired& wish,
                                                                     const ranks::Devices& baseline,
                                                                     Callbacks callbacks) {
  const std::string folder = ranks::AttemptFolder(node.state_dir, wish.id());
  AttemptRecord record;
  *record.mutable_id() = wish.id();
  record.set_boot_id(node.boot_id);
  record.set_stage_id(wish.stage_id());
  UniqueFd staged;
  if (!wish.ranks().empty() && wish.goal() <= v1::GOAL_RUNNING) {
    if (!wish.stage_id().empty()) {
      MUSTER_ASSIGN_OR_RETURN(staged, stage::KeepVersion(node.state_dir, wish.stage_id()));
    }
    record.set_created_ticks(TicksSinceBoot());
    *record.mutable_baseline() = baseline;
    NoteRendezvous(wish.ranks(0), record);
    record.set_cgroup(node.cgroups.Create(Marker(node, wish.id())));
    ranks::NodeEnvironment environment;
    environment.base = node.base_environment;
    environment.marker = Marker(node, wish.id());
    environment.quota = {wish.log_quota().bytes(), wish.log_quota().drop_oldest()};
    record.set_log_quota(wish.log_quota().bytes() > 0);
    if (!record.cgroup().empty()) environment.cgroup_procs = record.cgroup() + "/cgroup.procs";
    const absl::Status status = ranks::WriteRankFolders(folder, wish, environment);
    if (!status.ok()) {
      if (!record.cgroup().empty()) node.cgroups.Remove(record.cgroup());
      return status;
    }
  }
  std::unique_ptr<AttemptRunner> runner(
      new AttemptRunner(node, folder, record, AckRecord(), std::move(callbacks)));
  runner->staged_ = std::move(staged);
  return runner;
}

absl::StatusOr<std::unique_ptr<AttemptRunner>> AttemptRunner::Load(const NodeContext& node,
                                                                   const std::string& folder,
                                                                   Callbacks callbacks) {
  MUSTER_ASSIGN_OR_RETURN(AttemptRecord record, ranks::LoadRecord(folder));
  if (record.boot_id() != node.boot_id) {
    // Everything that lived is gone; times of the other boot mean nothing. What runs already in
    // this boot is not ours.
    record.set_boot_id(node.boot_id);
    record.set_created_ticks(TicksSinceBoot());
    record.set_deadline_ns(0);
    record.clear_cgroup();
  }
  std::unique_ptr<AttemptRunner> runner(
      new AttemptRunner(node, folder, record, ranks::LoadAcks(folder), std::move(callbacks)));
  if (!runner->Forgotten()) runner->AdoptShims();
  if (!record.stage_id().empty() && !runner->Idle()) {
    auto staged = stage::KeepVersion(node.state_dir, record.stage_id());
    if (staged.ok()) {
      runner->staged_ = *std::move(staged);
    } else {
      log::Warning(folder + ": " + std::string(staged.status().message()));
    }
  }
  return runner;
}

AttemptRunner::AttemptRunner(const NodeContext& node, std::string folder,
                             const AttemptRecord& record, const AckRecord& acks,
                             Callbacks callbacks)
    : node_(node),
      folder_(std::move(folder)),
      callbacks_(std::move(callbacks)),
      machine_(record, *this, node.reactor.clock()),
      spool_(record.id(), folder_, acks) {}

AttemptRunner::~AttemptRunner() {
  for (const Reactor::TimerId id :
       {tick_timer_, flush_timer_, logs_timer_, acks_timer_, inspect_timer_, save_timer_}) {
    if (id != 0) node_.reactor.Cancel(id);
  }
}

void AttemptRunner::AdoptShims() {
  // Exits that nobody watched are told in the order in which they happened.
  std::vector<std::pair<uint32_t, std::optional<shim::ShimStatus>>> gone;
  const auto ranks = record().ranks();
  for (const v1::RankStatus& status : ranks) {
    const uint32_t rank = status.rank();
    machine_.SetDropped(rank, spool_.LostOf(rank));
    const std::string folder = ranks::RankFolder(folder_, rank);
    auto link = ranks::ShimLink::Adopt(node_.reactor, folder, LinkCallbacks(rank));
    if (link.ok()) {
      links_[rank] = *std::move(link);
      machine_.OnAdopted(rank);
      TellAcked(rank);
      continue;
    }
    const auto last = ranks::ReadExitRecord(folder);
    const bool never_started =
        status.state() == v1::RANK_STATE_ABSENT || status.state() == v1::RANK_STATE_PREPARED;
    if (!last && never_started && status.error().empty() && record().goal() == v1::GOAL_PREPARED) {
      machine_.Respawn(rank);
    } else {
      gone.emplace_back(rank, last);
    }
  }
  std::stable_sort(gone.begin(), gone.end(), [](const auto& a, const auto& b) {
    const int64_t never = INT64_MAX;
    return (a.second ? a.second->ended_ns : never) < (b.second ? b.second->ended_ns : never);
  });
  for (const auto& [rank, last] : gone) {
    machine_.OnGone(rank, last);
    spool_.CompleteFromFile(rank);
  }
  machine_.Tick();
  Settle();
}

ranks::ShimLink::Callbacks AttemptRunner::LinkCallbacks(uint32_t rank) {
  return {[this, rank](const shim::ShimStatus& status) { TakeStatus(rank, status); },
          [this, rank](const std::optional<shim::ShimStatus>& last) { TakeGone(rank, last); }};
}

void AttemptRunner::TakeStatus(uint32_t rank, const shim::ShimStatus& status) {
  if (status.state == shim::ShimState::kRunning && !status.in_cgroup) outside_cgroup_ = true;
  machine_.OnStatus(rank, status);
  for (size_t i = 0; i < shim::kNumStreams; ++i) {
    spool_.Grow(rank, i, status.streams[i].size, status.streams[i].eof);
  }
  Settle();
  LogsGrew();
}

void AttemptRunner::TakeGone(uint32_t rank, const std::optional<shim::ShimStatus>& last) {
  links_.erase(rank);
  machine_.OnGone(rank, last);
  spool_.CompleteFromFile(rank);
  Settle();
  LogsGrew();
}

void AttemptRunner::Apply(const v1::Desired& wish) {
  refused_.clear();
  // Afterwards nothing is known of the ranks any more.
  if (wish.goal() == v1::GOAL_FORGOTTEN && flush_timer_ != 0) callbacks_.changed();
  machine_.Apply(wish);
  for (const v1::RankStatus& rank : record().ranks()) {
    // A shim that could not even be started leaves empty logs.
    if (!rank.error().empty() && !links_.contains(rank.rank()))
      spool_.CompleteFromFile(rank.rank());
  }
  Settle();
  LogsGrew();
}

void AttemptRunner::Ack(const v1::LogAck& ack) {
  if (!spool_.Ack(ack) || Forgotten()) return;
  TellAcked(ack.rank());
  machine_.SetDropped(ack.rank(), spool_.LostOf(ack.rank()));
  if (acks_timer_ != 0) return;
  acks_timer_ = node_.reactor.After(kAckInterval, [this] {
    acks_timer_ = 0;
    if (Forgotten()) return;
    const absl::Status status = ranks::SaveAcks(folder_, spool_.Acks());
    if (!status.ok()) log::Warning(std::string(status.message()));
  });
}

void AttemptRunner::TellAcked(uint32_t rank) {
  const auto link = links_.find(rank);
  if (link == links_.end() || !record().log_quota()) return;
  for (size_t i = 0; i < shim::kNumStreams; ++i) {
    if (const uint64_t acked = spool_.AckedOf(rank, i); acked > 0) {
      link->second->SendAcknowledged(i, acked);
    }
  }
}

v1::Observed AttemptRunner::Observe() const {
  v1::Observed observed = machine_.Observe();
  observed.set_refused(refused_);
  return observed;
}

void AttemptRunner::Settle() {
  if (machine_.MayForget()) {
    ranks::DropAttemptFiles(folder_);
    machine_.MarkForgotten();
  }
  if (Idle()) staged_.reset();
  if (tick_timer_ != 0) node_.reactor.Cancel(std::exchange(tick_timer_, 0));
  if (!machine_.NextTick()) return;
  tick_timer_ = node_.reactor.At(*machine_.NextTick(), [this] {
    tick_timer_ = 0;
    machine_.Tick();
    Settle();
  });
}

std::string AttemptRunner::Spawn(uint32_t rank) {
  auto link = ranks::ShimLink::Spawn(node_.reactor, node_.shim_program,
                                     ranks::RankFolder(folder_, rank), LinkCallbacks(rank));
  if (!link.ok()) return std::string(link.status().message());
  links_[rank] = *std::move(link);
  return "";
}

void AttemptRunner::Command(uint32_t rank, shim::ShimCommand command) {
  const auto it = links_.find(rank);
  if (it != links_.end()) it->second->Send(command);
}

ranks::ScanResult AttemptRunner::Scan() {
  ranks::SweepTarget target;
  target.marker = "MUSTER_ATTEMPT=" + Marker(node_, record().id());
  target.created_ticks = record().created_ticks();
  for (const auto& [rank, link] : links_) {
    if (link->shim_pid() != 0) target.shims.emplace(link->shim_pid(), rank);
  }
  if (!record().cgroup().empty()) target.cgroup = node_.cgroups.Members(record().cgroup());
  const bool shim_lost =
      std::any_of(record().ranks().begin(), record().ranks().end(),
                  [](const v1::RankStatus& rank) { return rank.exit().shim_lost(); });
  target.trees_incomplete = shim_lost && (record().cgroup().empty() || outside_cgroup_);
  return ranks::FindLeftovers(node_.proc, target);
}

void AttemptRunner::Signal(const ranks::Leftover& leftover, int signal) {
  ranks::SignalProcess(node_.proc, leftover, signal);
}

void AttemptRunner::SignalRank(uint32_t rank, int signal) {
  const auto link = links_.find(rank);
  if (link == links_.end()) return;
  for (const v1::RankStatus& status : record().ranks()) {
    if (status.rank() != rank) continue;
    const auto stat = node_.proc.Stat(static_cast<pid_t>(status.pid()));
    // Its parent tells that the number still names the rank.
    if (!stat || stat->IsZombie() || stat->ppid != link->second->shim_pid()) return;
    ranks::Leftover process;
    process.pid = stat->pid;
    process.start_ticks = stat->start_ticks;
    ranks::SignalProcess(node_.proc, process, signal);
    ranks::SignalProcess(node_.proc, process, SIGCONT);
  }
}

void AttemptRunner::WakeShims() {
  for (const auto& [rank, link] : links_) {
    if (link->shim_pid() != 0) kill(link->shim_pid(), SIGCONT);
  }
}

void AttemptRunner::KillShim(uint32_t rank) {
  const auto link = links_.find(rank);
  if (link != links_.end() && link->second->shim_pid() != 0)
    kill(link->second->shim_pid(), SIGKILL);
}

void AttemptRunner::KillCgroup() {
  if (!record().cgroup().empty()) node_.cgroups.Kill(record().cgroup());
}

std::string AttemptRunner::ErrorRecord(uint32_t rank) {
  const std::string path = ranks::RankFolder(folder_, rank) + "/" + shim::kErrorFile;
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(kMaxErrorRecord, '\0');
  const ssize_t n = fd ? pread(fd.get(), text.data(), text.size(), 0) : 0;
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

void AttemptRunner::Save(const AttemptRecord& record) {
  std::string bytes = record.SerializeAsString();
  if (bytes == saved_) return;
  const absl::Status status = ranks::SaveRecord(folder_, record);
  if (status.ok()) {
    saved_ = std::move(bytes);
    save_failed_ = false;
    return;
  }
  // The ranks matter more than the record: a full disk must not keep a stop from happening.
  if (!save_failed_) log::Error(std::string(status.message()) + "; trying again every second");
  save_failed_ = true;
  if (save_timer_ != 0) return;
  save_timer_ = node_.reactor.After(kSaveAgain, [this] {
    save_timer_ = 0;
    Save(this->record());
  });
}

void AttemptRunner::Changed() {
  const bool decided = machine_.Decided();
  if (flush_timer_ != 0) {
    if (flush_soon_ || !decided) return;
    node_.reactor.Cancel(flush_timer_);
  }
  flush_soon_ = decided;
  flush_timer_ = node_.reactor.After(decided ? kCoalesce : kCoalesceOnTheWay, [this] {
    flush_timer_ = 0;
    Save(record());
    callbacks_.changed();
  });
}

void AttemptRunner::LogsGrew() {
  if (logs_timer_ != 0) return;
  logs_timer_ = node_.reactor.After(kCoalesce, [this] {
    logs_timer_ = 0;
    callbacks_.logs();
  });
}

void AttemptRunner::Ended() {
  if (!record().cgroup().empty()) node_.cgroups.Remove(record().cgroup());
}

}  // namespace muster::worker
