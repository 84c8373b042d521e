#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

namespace muster::logs {

// What a job's rules say after its end (docs/logs.md, "Removal").
struct Retention {
  bool remove_all = false;  // its time is over
  uint64_t keep_bytes = 0;  // 0 = all
};

// Removes log files of an ended job below `output_dir`, as the user who owns them: the node files
// first, which are derived, then the oldest attempts and in them the oldest parts, at last whole
// streams, the largest first, until no more than keep_bytes are left. Nothing else than what the
// log organ has written is touched, and nothing through a link. Repeatable.
absl::Status PruneLogs(const std::string& output_dir, const Retention& retention, uint32_t uid,
                       uint32_t gid);

}  // namespace muster::logs
