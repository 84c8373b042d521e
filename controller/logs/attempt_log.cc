#include "controller/logs/attempt_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/fs_user.h"
#include "controller/logs/layout.h"

namespace muster::logs {

AttemptLog::AttemptLog(const AttemptFiles& files, OpenFiles& open_files, Packer& packer)
    : files_(files),
      growth_(std::make_shared<Growth>(static_cast<size_t>(files.plan.ranks_size()))),
      journal_(AttemptDir(files.output_dir, files.id.attempt()) + "/streams.journal") {
  for (int node = 0; node < files.plan.nodes_size(); ++node) {
    nodes_.push_back(
        std::make_unique<NodeLog>(files, static_cast<size_t>(node), open_files, packer, *growth_));
  }
}

absl::StatusOr<std::unique_ptr<AttemptLog>> AttemptLog::Open(const AttemptFiles& files,
                                                             OpenFiles& open_files,
                                                             Packer& packer) {
  for (const v1::NodePlan& node : files.plan.nodes()) {
    const uint64_t end = uint64_t{node.first_rank()} + node.num_ranks();
    if (end > static_cast<uint64_t>(files.plan.ranks_size())) {
      return absl::InvalidArgumentError("logs of job " + files.id.job_id() + ": host " +
                                        node.host().host() + " has ranks beyond the plan's");
    }
  }
  const ScopedFsUser user(files.uid, files.gid);
  std::unique_ptr<AttemptLog> attempt(new AttemptLog(files, open_files, packer));
  MUSTER_RETURN_IF_ERROR(attempt->Prepare());
  return attempt;
}

absl::Status AttemptLog::Prepare() {
  const std::string attempt_dir = AttemptDir(files_.output_dir, files_.id.attempt());
  MUSTER_RETURN_IF_ERROR(MakeDirs(attempt_dir));
  for (const v1::RankPlan& rank : files_.plan.ranks()) MUSTER_RETURN_IF_ERROR(MakeRank(rank));
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const std::string path = MergedPath(files_.output_dir, files_.plan, node, files_.id.attempt());
    MUSTER_RETURN_IF_ERROR(OpenFile(path, O_RDWR | O_CREAT).status());
  }
  MUSTER_ASSIGN_OR_RETURN(const EndJournal::Content content, journal_.Recover());
  for (const EndJournal::End& end : content.ends) {
    for (const auto& node : nodes_) node->RestoreEnd(end);
  }
  for (const uint32_t node : content.abandoned) {
    if (node < nodes_.size()) nodes_[node]->Abandon();
  }
  MUSTER_RETURN_IF_ERROR(SyncDir(attempt_dir));
  MUSTER_RETURN_IF_ERROR(SyncDir(files_.output_dir + "/ranks"));
  return SyncDir(files_.output_dir);
}

absl::Status AttemptLog::MakeRank(const v1::RankPlan& rank) {
  const uint32_t attempt = files_.id.attempt();
  const std::string folder = RankDir(files_.output_dir, attempt, rank.rank());
  MUSTER_RETURN_IF_ERROR(MakeDirs(folder));
  for (const v1::Stream stream : kStreams) {
    MUSTER_RETURN_IF_ERROR(OpenFile(folder + "/" + LogName(stream), O_RDWR | O_CREAT).status());
  }
  if (rank.node() >= nodes_.size()) return absl::OkStatus();
  const std::string& host = files_.plan.nodes(static_cast<int>(rank.node())).host().host();
  const std::string run_id = files_.run_id.empty() ? files_.id.job_id() : files_.run_id;
  const std::string links = TorchrunDir(files_.output_dir, run_id, host, attempt);
  MUSTER_RETURN_IF_ERROR(MakeDirs(links));
  const std::string link = links + "/" + std::to_string(rank.local_rank());
  const std::string target =
      "../../ranks/attempt_" + std::to_string(attempt) + "/" + std::to_string(rank.rank());
  if (symlink(target.c_str(), link.c_str()) != 0 && errno != EEXIST) {
    return PosixError("link " + link);
  }
  return absl::OkStatus();
}

NodeLog* AttemptLog::NodeOf(uint32_t rank, const std::string& host) const {
  if (rank >= static_cast<uint32_t>(files_.plan.ranks_size())) return nullptr;
  const uint32_t node = files_.plan.ranks(static_cast<int>(rank)).node();
  if (node >= nodes_.size()) return nullptr;
  if (files_.plan.nodes(static_cast<int>(node)).host().host() != host) return nullptr;
  return nodes_[node].get();
}

void AttemptLog::Begin(Outbox& out) {
  jobs_.clear();
  for (const auto& node : nodes_) jobs_.push_back(node->Begin(out));
}

std::vector<SyncJob*> AttemptLog::Jobs() {
  std::vector<SyncJob*> jobs;
  for (std::vector<SyncJob>& of_node : jobs_) {
    for (SyncJob& job : of_node) jobs.push_back(&job);
  }
  return jobs;
}

bool AttemptLog::Conclude(NodeLog::TimePoint now, std::chrono::milliseconds retry, Outbox& out) {
  std::vector<std::vector<EndJournal::End>> ends;
  std::vector<EndJournal::End> all;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    ends.push_back(nodes_[i]->Synced(jobs_[i], out));
    all.insert(all.end(), ends.back().begin(), ends.back().end());
  }
  const absl::Status recorded = all.empty() ? absl::OkStatus() : journal_.Append(all);
  bool again = false;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    again = nodes_[i]->Conclude(ends[i], recorded, now, retry, out) || again;
  }
  jobs_.clear();
  return again;
}

absl::Status AttemptLog::Abandon(const std::string& host) {
  const ScopedFsUser user(files_.uid, files_.gid);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (files_.plan.nodes(static_cast<int>(i)).host().host() != host) continue;
    nodes_[i]->Abandon();
    MUSTER_RETURN_IF_ERROR(journal_.AppendAbandoned(static_cast<uint32_t>(i)));
  }
  return absl::OkStatus();
}

bool AttemptLog::CheckComplete(Outbox& out) {
  if (growth_->complete()) return false;
  const bool done =
      std::all_of(nodes_.begin(), nodes_.end(), [](const auto& node) { return node->Done(); });
  if (!done) return false;
  for (const auto& node : nodes_) node->Finish(out);
  growth_->SetComplete();
  return true;
}

}  // namespace muster::logs
