#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::logs {

// Where bytes of a stream are missing in its log file, because its node had dropped them
// (LogQuota): a marker stands there instead. Offsets in the *file* and in the *stream* (as the rank
// wrote it) differ behind the first gap; this translates. Kept beside the log in `stdout.gaps`,
// made at the first gap, one line each:
//
//   <offset of the marker in the file> <bytes lost> <bytes of the marker>
//
// The owner locks.
class Gaps {
 public:
  struct Gap {
    uint64_t at = 0;
    uint64_t lost = 0;
    uint64_t marker = 0;
  };

  explicit Gaps(std::string path) : path_(std::move(path)) {}

  // What a former process wrote. A gap whose marker lies not wholly within `file_size` does not
  // count and is removed: the result is the size that the log must be cut to.
  absl::StatusOr<uint64_t> Recover(uint64_t file_size);
  // Durable when it returns OK.
  absl::Status Add(const Gap& gap);

  // The stream's byte at this offset of the file; the gap's begin for one within a marker.
  uint64_t ToStream(uint64_t file_offset) const;
  // Bytes lost in gaps below this offset of the file.
  uint64_t lost() const;
  bool empty() const { return gaps_.empty(); }

 private:
  const std::string path_;
  std::vector<Gap> gaps_;
  uint64_t bytes_ = 0;  // of the file that hold gaps_
};

}  // namespace muster::logs
