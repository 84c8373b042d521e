#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <vector>

#include "muster/v1/worker.pb.h"
#include "worker/ranks/record.pb.h"
#include "worker/shim/rank_spec.h"

// The daemon's files of attempts and ranks (docs/formats.md, "Rank folder"). Reactor thread only.

namespace muster::ranks {

// <state>/jobs/<controller>/<job>/attempt_<n>
std::string AttemptFolder(const std::string& state_dir, const v1::AttemptId& id);
// <attempt>/<rank>
std::string RankFolder(const std::string& attempt_folder, uint32_t rank);

// What only the node knows about its ranks.
struct NodeEnvironment {
  // PATH, HOME, LANG ... as the daemon has them.
  std::vector<std::pair<std::string, std::string>> base;
  std::string marker;        // value of MUSTER_ATTEMPT
  std::string cgroup_procs;  // "" = no cgroup
  shim::LogQuota quota;      // of each log of a rank
  std::string root = "/";    // where /proc and /sys are, but for tests
};

// The base environment of ranks, out of this process's own.
std::vector<std::pair<std::string, std::string>> BaseEnvironment(const char* const* environment);

// base, then the wish's own variables, then what Muster sets on the node; a later one replaces an
// earlier one.
shim::RankSpec MakeRankSpec(const v1::RankSpec& rank, const NodeEnvironment& node,
                            const std::string& rank_folder);

// Makes the folder of every rank, with its spec. On failure nothing new is left behind.
absl::Status WriteRankFolders(const std::string& attempt_folder, const v1::Desired& wish,
                              const NodeEnvironment& node);

// The attempt's record and its log acknowledgements.
absl::Status SaveRecord(const std::string& attempt_folder, const worker::AttemptRecord& record);
absl::Status SaveAcks(const std::string& attempt_folder, const worker::AckRecord& acks);
absl::StatusOr<worker::AttemptRecord> LoadRecord(const std::string& attempt_folder);
worker::AckRecord LoadAcks(const std::string& attempt_folder);

// Folders of all attempts below the state folder.
std::vector<std::string> FindAttempts(const std::string& state_dir);

// Removes what an attempt left, but for its record: the tombstone that keeps old wishes away.
void DropAttemptFiles(const std::string& attempt_folder);
// Removes the tombstone too, and parents that became empty.
void DropAttempt(const std::string& attempt_folder);

}  // namespace muster::ranks
