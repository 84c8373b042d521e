#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/unique_fd.h"

namespace muster::logs {

// One file to be made durable.
struct SyncJob {
  size_t stream = 0;  // the owner's number for it
  std::shared_ptr<const UniqueFd> fd;
  uint64_t size = 0;   // what the file had when the job was made: durable if status is OK
  std::string path;    // for messages
  std::string folder;  // if not empty: its entry in this folder too
  absl::Status status;
};

// Runs all jobs, several at a time: a file system commits what waits together at once. On ext4, 320
// small files take 1.6 s one after the other, 12 to 40 ms with 16 threads (syncfs is as quick, but
// would wait for other programs' data).
void SyncAll(const std::vector<SyncJob*>& jobs);

}  // namespace muster::logs
