#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"

namespace muster::testing {

// A worker without processes: keeps the rules of worker.proto for wishes, and lets a test decide
// when each rank moves. Pure; not thread-safe.
class FakeNode {
 public:
  // What is wrong with this node.
  struct Faults {
    std::string prepare_error;         // of its ranks
    std::string start_error;           // of its ranks, found at their start
    std::string program_error;         // of probes
    std::string port_error;            // of probes
    std::string boot_id;               // instead of its own
    bool silent = false;               // probes are not answered
    std::set<uint32_t> unreachable;    // nodes that this one can't connect to
    std::set<uint32_t> survives_stop;  // ranks in state D: no signal ends them
    std::optional<uint64_t> devices;   // number of devices; absent: none
  };

  // By default each node is a machine of its own.
  explicit FakeNode(std::string host, std::string boot_id = "");

  Faults faults;

  v1::WorkerHello Hello() const;
  v1::ProbeResult Answer(const v1::Probe& probe);
  std::optional<v1::ProbeResult> AnswerUnlessSilent(const v1::Probe& probe);
  int probes_answered() const { return probes_answered_; }
  // A wish arrives; what the node then reports.
  v1::Observed Apply(const v1::Desired& wish);

  // Ranks that could move on by one step now (prepare, start, die of a stop), and attempts whose
  // end could be proved.
  struct Step {
    std::string attempt;
    std::optional<uint32_t> rank;  // absent: the end report
  };
  std::vector<Step> Steps() const;
  v1::Observed Take(const Step& step);
  // Takes steps until there are none; the last report of each attempt that moved.
  std::vector<v1::Observed> Settle();

  // A rank ends by itself.
  v1::Observed Exit(const std::string& attempt, uint32_t rank, int32_t code, int32_t signal,
                    int64_t ended_ns);
  // Running ranks as (attempt, rank).
  std::vector<std::pair<std::string, uint32_t>> Running() const;
  // The state of every attempt, as after a reconnect.
  std::vector<v1::Observed> ReportAll() const;
  const std::map<uint32_t, v1::RankSpec>& specs() const { return specs_; }
  // Wishes that were accepted, in order: "PREPARED", "RUNNING" ...
  const std::vector<std::string>& accepted() const { return accepted_; }
  double last_grace_seconds() const { return last_grace_seconds_; }

 private:
  struct Attempt {
    v1::AttemptId id;
    uint64_t generation = 0;
    v1::Goal goal = v1::GOAL_UNSPECIFIED;
    std::map<uint32_t, v1::RankStatus> ranks;
    std::optional<v1::EndReport> end;
    uint64_t wait_order = 0;
  };
  std::string Refusal(const v1::Desired& wish, const Attempt* attempt) const;
  bool MayMove(const Attempt& attempt, const v1::RankStatus& rank) const;
  bool MayEnd(const Attempt& attempt) const;
  v1::Observed Report(const Attempt& attempt) const;

  const std::string host_;
  const std::string boot_id_;
  std::map<std::string, Attempt> attempts_;
  std::map<uint32_t, v1::RankSpec> specs_;
  std::vector<std::string> accepted_;
  double last_grace_seconds_ = -1;
  int probes_answered_ = 0;
};

}  // namespace muster::testing
