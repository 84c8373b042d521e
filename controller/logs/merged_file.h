#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "controller/logs/live_file.h"
#include "controller/logs/merged_format.h"
#include "controller/logs/stream_file.h"

namespace muster::logs {

// One node's merged log: whole lines of all its ranks, tagged, in the order in which they arrived.
// Derived from the stream files and therefore never the only copy of anything: what could not be
// written now is taken from them later. The owner locks.
class MergedFile {
 public:
  // Ranks first_rank .. first_rank + num_ranks - 1 of a job of `width` digits.
  MergedFile(std::string path, uint32_t first_rank, uint32_t num_ranks, int width,
             const Rotation& rotation, OpenFiles& open_files);
  MergedFile(const MergedFile&) = delete;
  MergedFile& operator=(const MergedFile&) = delete;

  // Makes the file, or reads how much of each stream a former process has put into it. A torn or
  // damaged end is cut off and will be written again by Merge.
  absl::Status Recover();

  // Whether Merge can bring in anything after `fresh` bytes came to `source`: it saves reading the
  // beginning of a line again and again.
  bool Worthwhile(uint32_t rank, const StreamFile& source, std::string_view fresh);

  // Brings in what `source` has and this file has not. `ended`: the stream is whole, so a last line
  // without a newline is written too. An error leaves the file at a line's end; call again.
  absl::Status Merge(uint32_t rank, StreamFile& source, bool ended);

  absl::Status Sync();
  void Close() { file_.Close(); }

  const std::string& path() const { return file_.path(); }

 private:
  uint64_t& Position(uint32_t rank, v1::Stream stream);
  absl::StatusOr<bool> RecoverSome();

  const uint32_t first_rank_;
  const uint32_t num_ranks_;
  const int width_;

  LiveFile file_;
  uint64_t size_ = 0;                // end of the last whole line
  std::vector<uint64_t> positions_;  // merged bytes of each rank's stdout and stderr
};

}  // namespace muster::logs
