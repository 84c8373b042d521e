#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/times_format.h"

// The `.times` side file of one stream (common/times_format.h): repair after a crash, appending,
// and looking up. Any thread, one at a time.

namespace muster::logs {

// Where the writer goes on.
struct TimesTail {
  uint64_t file_size = 0;    // including the header
  uint64_t next_offset = 0;  // records below this are there already
};

// Makes the file at `fd` end with its last record below `log_size`: a torn record and those of
// bytes that never reached the log are cut off; a file without a right header starts anew.
absl::StatusOr<TimesTail> RepairTimes(int fd, uint64_t log_size, const std::string& path);

// Appends the records that lie at or above `tail.next_offset` and rise; others are repeats and are
// left out.
absl::Status AppendTimes(int fd, const std::vector<TimesRecord>& records, TimesTail& tail,
                         const std::string& path);

// The index of the first record above `offset`, by binary search; 0 when there is none at or below
// it.
absl::StatusOr<uint64_t> FirstRecordAbove(int fd, uint64_t offset, uint64_t num_records,
                                          const std::string& path);

// The offset of the first record that is not older than `realtime_ns`, by binary search; all ones
// when all are older.
absl::StatusOr<uint64_t> FirstOffsetSince(int fd, int64_t realtime_ns, uint64_t num_records,
                                          const std::string& path);

// Whole records behind a right header; 0 for a foreign or empty file.
absl::StatusOr<uint64_t> CountRecords(int fd, const std::string& path);

}  // namespace muster::logs
