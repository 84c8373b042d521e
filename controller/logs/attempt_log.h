#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "controller/logs/end_journal.h"
#include "controller/logs/growth.h"
#include "controller/logs/log_registry.h"
#include "controller/logs/node_log.h"

namespace muster::logs {

// One attempt's logs: its folders, its nodes and the journal of its ends.
class AttemptLog {
 public:
  // Makes folders, empty files and torchrun's links, and reads the journal. `open_files` and
  // `packer` outlive the object.
  static absl::StatusOr<std::unique_ptr<AttemptLog>> Open(const AttemptFiles& files,
                                                          OpenFiles& open_files, Packer& packer);

  // The node that runs `rank`; null if the plan has no such rank or it runs elsewhere than on
  // `host`. Any thread.
  NodeLog* NodeOf(uint32_t rank, const std::string& host) const;

  // Log thread only: one round over all nodes (see NodeLog), before and after the sync.
  void Begin(Outbox& out);
  std::vector<SyncJob*> Jobs();
  // True if another round is wanted although no chunk comes.
  bool Conclude(NodeLog::TimePoint now, std::chrono::milliseconds retry, Outbox& out);
  // Log thread only: records that the node is gone.
  absl::Status Abandon(const std::string& host);
  // Log thread only: true when it has just become complete.
  bool CheckComplete(Outbox& out);

  const v1::AttemptId& id() const { return files_.id; }
  const std::shared_ptr<Growth>& growth() const { return growth_; }

 private:
  AttemptLog(const AttemptFiles& files, OpenFiles& open_files, Packer& packer);
  absl::Status Prepare();
  absl::Status MakeRank(const v1::RankPlan& rank);

  const AttemptFiles files_;
  std::shared_ptr<Growth> growth_;
  std::vector<std::unique_ptr<NodeLog>> nodes_;  // as in the plan
  EndJournal journal_;                           // log thread, after Open
  std::vector<std::vector<SyncJob>> jobs_;       // log thread: of each node in this round
};

}  // namespace muster::logs
