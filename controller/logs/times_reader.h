#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/times_format.h"

namespace muster::logs {

// Tells when the bytes of a stream were written, asked in rising order; reads its `.times` file in
// small blocks, also while it grows. A missing or foreign file means "unknown". One thread.
class TimesReader {
 public:
  explicit TimesReader(std::string path) : path_(std::move(path)) {}

  // Node's time at which the byte at `offset` was written; 0 = unknown. Offsets must not fall.
  int64_t TimeAt(uint64_t offset);
  // Offset of the first byte that was written at or after this time, or of the file's end (all
  // ones) if there is none; nothing for a file without times. A clock that went back blurs it.
  std::optional<uint64_t> FirstSince(int64_t realtime_ns) const;
  // The file may have grown.
  void Refresh() { at_end_ = false; }

 private:
  void LoadBlock(uint64_t first);
  void Find(uint64_t offset);

  const std::string path_;
  bool started_ = false;
  bool at_end_ = false;  // the block reaches the end of the file as it was last seen
  uint64_t first_ = 0;   // index of block_[0]
  size_t next_ = 0;      // block_[next_] is the first record above the last offset asked for
  int64_t current_ = 0;
  std::vector<TimesRecord> block_;
};

}  // namespace muster::logs
