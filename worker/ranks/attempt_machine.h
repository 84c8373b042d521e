#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "muster/v1/worker.pb.h"
#include "worker/ranks/leftover.h"
#include "worker/ranks/record.pb.h"
#include "worker/shim/shim_status.h"

namespace muster::ranks {

// What the node finds when no process of the attempt is left.
struct Inspection {
  std::vector<std::string> held;  // devices and ports that are not free again
  std::vector<std::string> notes;
  std::string unverified;                // why it could not look; "" = it could
  std::optional<v1::KernelLook> kernel;  // if that was wished
};

// What the state machine of an attempt asks the world for. All calls return at once.
class AttemptEffects {
 public:
  virtual ~AttemptEffects() = default;
  // Starts the shim of a rank whose spec is on disk. "" or why it could not be started.
  virtual std::string Spawn(uint32_t rank) = 0;
  // Tells the shim, if it lives.
  virtual void Command(uint32_t rank, shim::ShimCommand command) = 0;
  // Processes of the attempt that live now, without shims.
  virtual ScanResult Scan() = 0;
  // Signals one process found by Scan, if it is still the same one.
  virtual void Signal(const Leftover& leftover, int signal) = 0;
  // Signals the rank itself, if it runs, and lets it go on if it is stopped.
  virtual void SignalRank(uint32_t rank, int signal) = 0;
  // SIGKILL to the attempt's whole cgroup, where there is one.
  virtual void KillCgroup() = 0;
  // Lets stopped shims go on: they can't obey in state T.
  virtual void WakeShims() = 0;
  // SIGKILL to a shim that does not obey; its rank goes with it.
  virtual void KillShim(uint32_t rank) = 0;
  // Looks whether devices and the head's port are free again, for some seconds if they are not, and
  // at what the kernel has said since `kernel_since_ns`, if given. OnInspected follows, later.
  virtual void Inspect(std::optional<int64_t> kernel_since_ns) = 0;
  // The rank's TORCHELASTIC_ERROR_FILE, at most 64 KiB.
  virtual std::string ErrorRecord(uint32_t rank) = 0;
  // Who holds the ports that a failed rank's last words call in use.
  virtual std::vector<std::string> PortHolders(uint32_t rank) = 0;
  // Makes the record durable before it returns.
  virtual void Save(const worker::AttemptRecord& record) = 0;
  // The record, and what Observed shows, has changed; it becomes durable soon. A shim's own exit
  // record bridges the gap.
  virtual void Changed() = 0;
  // The end is verified; the cgroup may go.
  virtual void Ended() = 0;
};

// The state machine of one attempt on this node: takes wishes, shim messages and time, asks
// AttemptEffects for what must happen. It has no clock of its own, no I/O and no threads;
// docs/protocol.md has its tables. Reactor thread only.
//
// The end of an attempt, whether by a stop or because all ranks ended by themselves:
//   TERM  SIGTERM+SIGCONT to every rank's tree (once), or the save signal to the ranks alone; when
//         all ranks have ended, whatever is left of their trees has until the deadline too (the
//         grace of a stop; 2 s after a natural end)
//   KILL  SIGKILL to everything that is left, repeated until nothing is left or 5 s have passed;
//         first through the shims, then directly, and shims that don't answer are killed too
//   DONE  nothing is left and devices and port have been looked at, or the EndReport names what
//         survived
class AttemptMachine {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // `record` is a new or a loaded one. Both references outlive the machine.
  AttemptMachine(worker::AttemptRecord record, AttemptEffects& effects, const Clock& clock);

  // An accepted wish (see Refusal). The record is saved before anything happens.
  void Apply(const v1::Desired& wish);
  // The shim of `rank` said something.
  void OnStatus(uint32_t rank, const shim::ShimStatus& status);
  // The shim of `rank` is gone; `last` is its exit record, if it left one.
  void OnGone(uint32_t rank, const std::optional<shim::ShimStatus>& last);
  // So many bytes of its output were dropped by its quota, as the controller has counted them.
  void SetDropped(uint32_t rank, uint64_t bytes);
  // A restarted daemon has found this rank's shim again.
  void OnAdopted(uint32_t rank) {
    live_shims_.insert(rank);
    untold_.insert(rank);
  }
  // A restarted daemon found neither shim nor exit record of a rank that was never started: starts
  // its shim.
  void Respawn(uint32_t rank);
  // The answer to Inspect.
  void OnInspected(Inspection inspection);
  // Time has passed, or the above calls of an adoption are over.
  void Tick();
  // When Tick must be called next.
  std::optional<TimePoint> NextTick() const { return next_tick_; }

  // The files are gone: only a tombstone stays, so that an old wish cannot bring the attempt back.
  void MarkForgotten();
  // GOAL_FORGOTTEN was accepted and nothing lives: the files may go.
  bool MayForget() const {
    return record_.goal() == v1::GOAL_FORGOTTEN && record_.forgotten_ns() == 0 &&
           record_.phase() == worker::END_PHASE_DONE && live_shims_.empty();
  }

  // The controller may go on with what Observe gives: the goal is reached, or something failed.
  bool Decided() const;
  // What the controller is told; without Observed.refused.
  v1::Observed Observe() const;
  const worker::AttemptRecord& record() const { return record_; }
  // No process of this attempt is known to live, and nobody is looking for one.
  bool Idle() const {
    const bool ending =
        record_.phase() == worker::END_PHASE_TERM || record_.phase() == worker::END_PHASE_KILL;
    return live_shims_.empty() && AllEnded() && !ending;
  }

 private:
  v1::RankStatus* Find(uint32_t rank);
  bool AllEnded() const;
  // All ranks ended well, and the shim of each, their subreaper, had no child left.
  bool ProvedByShims() const;
  bool Reached() const;
  void NoteLoss(v1::RankStatus& rank);
  void SpawnRank(v1::RankStatus& rank);
  void TakeExit(v1::RankStatus& rank, const shim::ShimStatus& status);
  // Notes the stop in the record; true if the ranks must be told.
  bool PlanStop(std::chrono::nanoseconds grace);
  void SendTerm();
  void SendSaveSignal();
  void Inspect();
  void EnterPhase(worker::EndPhase phase, TimePoint deadline);
  void EnterKill();
  void Sweep(TimePoint now);
  void EndLeftovers(const std::vector<Leftover>& leftovers);
  void Finish(const ScanResult& last);
  void CommandAll(shim::ShimCommand command);
  TimePoint Deadline() const;

  worker::AttemptRecord record_;
  AttemptEffects& effects_;
  const Clock& clock_;
  std::set<uint32_t> live_shims_;
  std::set<uint32_t> untold_;     // adopted, nothing heard yet
  std::set<uint32_t> childless_;  // ranks whose shims have no child left
  std::optional<TimePoint> next_tick_;
  // When the last rank ended: the trees get a moment to fall before anyone is called a leftover.
  std::optional<TimePoint> all_ended_;
  std::map<std::pair<pid_t, uint64_t>, Leftover> swept_;
  std::set<std::pair<pid_t, uint64_t>> terminated_;
  std::map<uint32_t, uint64_t> unwritten_;  // bytes that a full disk did not take, as shims say
  std::map<uint32_t, uint64_t> dropped_;    // ... that quotas have dropped
  bool inspecting_ = false;
  std::optional<Inspection> inspection_;
};

}  // namespace muster::ranks
