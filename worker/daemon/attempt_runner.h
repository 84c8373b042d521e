#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/reactor.h"
#include "common/unique_fd.h"
#include "worker/facts/proc_reader.h"
#include "worker/ranks/attempt_machine.h"
#include "worker/ranks/cgroup.h"
#include "worker/ranks/freed.h"
#include "worker/ranks/rank_folder.h"
#include "worker/ranks/shim_link.h"
#include "worker/spool/log_spool.h"

namespace muster::worker {

// What all attempts of a node share. Constructed, then immutable.
struct NodeContext {
  Reactor& reactor;
  const facts::ProcReader& proc;
  ranks::Cgroups& cgroups;
  std::string state_dir;
  std::string shim_program;
  std::string boot_id;
  // Tells apart several daemons of one user on one machine; part of the marker in the ranks'
  // environment.
  std::string tag;
  std::vector<std::pair<std::string, std::string>> base_environment;
};

// One attempt on this node: the state machine, joined to real shims, files, sweep and log spool.
// Reactor thread only.
class AttemptRunner : private ranks::AttemptEffects {
 public:
  struct Callbacks {
    std::function<void()> changed;  // Observe() gives something new; 10 to 50 ms after it
    std::function<void()> logs;     // spool() has something to send; at most every 10 ms
    std::function<void(const v1::Probe&, std::function<void(v1::ProbeResult)>)> ask;  // the helper
  };

  // A new attempt: makes the rank folders of `wish`, which must have been found acceptable;
  // `baseline`: the node's devices before it, if known. Apply comes next.
  static absl::StatusOr<std::unique_ptr<AttemptRunner>> Create(const NodeContext& node,
                                                               const v1::Desired& wish,
                                                               const ranks::Devices& baseline,
                                                               Callbacks callbacks);
  // What an earlier daemon left in `folder`: finds its shims again and carries on.
  static absl::StatusOr<std::unique_ptr<AttemptRunner>> Load(const NodeContext& node,
                                                             const std::string& folder,
                                                             Callbacks callbacks);
  ~AttemptRunner() override;
  AttemptRunner(const AttemptRunner&) = delete;
  AttemptRunner& operator=(const AttemptRunner&) = delete;

  void Apply(const v1::Desired& wish);
  void Ack(const v1::LogAck& ack);
  // Why the last wish was refused, "" if it was not; part of Observe.
  void set_refused(std::string reason) { refused_ = std::move(reason); }
  v1::Observed Observe() const;

  spool::LogSpool& spool() { return spool_; }
  const AttemptRecord& record() const { return machine_.record(); }
  // Nothing of it lives.
  bool Idle() const { return machine_.Idle(); }
  // Only the tombstone is left.
  bool Forgotten() const { return record().forgotten_ns() != 0; }

 private:
  AttemptRunner(const NodeContext& node, std::string folder, const AttemptRecord& record,
                const AckRecord& acks, Callbacks callbacks);
  void AdoptShims();
  void TakeStatus(uint32_t rank, const shim::ShimStatus& status);
  void TakeGone(uint32_t rank, const std::optional<shim::ShimStatus>& last);
  ranks::ShimLink::Callbacks LinkCallbacks(uint32_t rank);
  void TellAcked(uint32_t rank);
  void Settle();
  void LogsGrew();
  // --- inspection.cc
  void AskInspection(std::optional<int64_t> kernel_since_ns);
  void TakeInspection(const v1::ProbeResult& answer, bool asked);
  void InspectPort(ranks::Inspection& inspection) const;

  // AttemptEffects
  std::string Spawn(uint32_t rank) override;
  void Command(uint32_t rank, shim::ShimCommand command) override;
  ranks::ScanResult Scan() override;
  void Signal(const ranks::Leftover& leftover, int signal) override;
  void SignalRank(uint32_t rank, int signal) override;
  void KillCgroup() override;
  void WakeShims() override;
  void KillShim(uint32_t rank) override;
  void Inspect(std::optional<int64_t> kernel_since_ns) override;
  std::string ErrorRecord(uint32_t rank) override;
  std::vector<std::string> PortHolders(uint32_t rank) override;
  void Save(const AttemptRecord& record) override;
  void Changed() override;
  void Ended() override;

  const NodeContext& node_;
  const std::string folder_;
  Callbacks callbacks_;
  ranks::AttemptMachine machine_;
  spool::LogSpool spool_;
  std::map<uint32_t, std::unique_ptr<ranks::ShimLink>> links_;
  bool outside_cgroup_ = false;  // some rank could not join it
  std::string refused_;
  std::string saved_;  // the record as it is on disk
  UniqueFd staged_;    // keeps the staged tree that the ranks use
  bool save_failed_ = false;
  Reactor::TimerId tick_timer_ = 0;
  Reactor::TimerId flush_timer_ = 0;
  bool flush_soon_ = false;  // what is to be flushed decides something
  Reactor::TimerId logs_timer_ = 0;
  Reactor::TimerId acks_timer_ = 0;
  Reactor::TimerId inspect_timer_ = 0;
  Reactor::TimerId save_timer_ = 0;
  Reactor::TimePoint inspect_until_;
  std::optional<v1::KernelLook> kernel_;  // what Inspect has found so far
  std::shared_ptr<const bool> alive_ = std::make_shared<bool>(true);  // for late answers
};

}  // namespace muster::worker
