#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "muster/v1/worker.pb.h"
#include "worker/shim/log_floor.h"

namespace muster::spool {

// Reads one growing log file and its `.times` file in chunks. Reactor thread only.
class StreamReader {
 public:
  static constexpr uint64_t kMaxChunk = 256 << 10;
  // More writes than this end a chunk early: its times must fit a message too.
  static constexpr int kMaxTimes = 4096;

  // `times_path` may be empty; `stream`: the log's number in `floor_path` (shim::LogFloor). Files
  // are opened when first needed: they may not exist yet.
  StreamReader(std::string log_path, std::string times_path, std::string floor_path, size_t stream);

  // Fills data and times of `chunk` from `offset`, at most up to `limit` (exclusive). False if
  // nothing could be read, or Floor() has risen above `offset`.
  bool Read(uint64_t offset, uint64_t limit, v1::LogChunk& chunk);

  // Bytes below are gone from this disk.
  uint64_t Floor();

  // Why the last Read could not read: "read stdout.log: Input/output error"; empty: it found the
  // file's end.
  const std::string& error() const { return error_; }

  // Gives the descriptors back; a later Read opens the files again.
  void Close();

 private:
  // Index of the first whole record whose offset is at least `offset`.
  uint64_t FindRecord(uint64_t offset);
  bool OpenTimes();
  void Fail(const char* what);
  uint64_t CountRecords() const;

  std::string error_;
  const std::string log_path_;
  const std::string times_path_;
  const std::string floor_path_;
  const size_t stream_;
  UniqueFd log_;
  UniqueFd times_;
  shim::LogFloor floors_;
  bool looked_for_floors_ = false;  // the shim makes them before it makes the log
  // Where the last Read ended: the usual next call begins there.
  uint64_t next_offset_ = 0;
  uint64_t next_record_ = 0;
};

}  // namespace muster::spool
