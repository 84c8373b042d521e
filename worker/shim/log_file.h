#pragma once

#include <cstdint>
#include <string>

#include "common/unique_fd.h"
#include "worker/shim/log_floor.h"

namespace muster::shim {

// What a rank may keep on its node's disk of one stream.
struct LogQuota {
  uint64_t bytes = 0;        // 0 = no limit
  bool drop_oldest = false;  // past it the oldest bytes go; false: the rank has to wait

  friend bool operator==(const LogQuota&, const LogQuota&) = default;
};

// A log file that only grows at its end, keeps its name and offsets, and gives back its beginning
// to the file system when the quota asks for it: bytes below floor() are a hole in the file. First
// go those that the controller has acknowledged, a quarter of the quota at a time; beyond them only
// with `drop_oldest`. Where the file system cannot free a part of a file, acknowledged bytes count
// as freed although they stay. Shim's only thread.
class LogFile {
 public:
  // Makes the file (mode 0600). `floor` is told before bytes go, and outlives the object; null: no
  // quota. error() says what failed.
  LogFile(const std::string& path, const LogQuota& quota, LogFloor* floor, size_t stream);

  // Whether `count` more bytes fit the quota, after freeing what may be freed. False: wait for an
  // acknowledgement.
  bool MakeRoom(uint64_t count);
  // Frees all that is acknowledged: the disk is full. False: there was nothing.
  bool FreeAcknowledged();
  // Writes all or counts what got through: the number of bytes written; less than `count` with
  // errno set.
  uint64_t Append(const char* data, uint64_t count);
  // Takes back the last bytes.
  void CutTo(uint64_t size);

  // The controller has what lies below.
  void Acknowledge(uint64_t offset);

  bool ok() const { return static_cast<bool>(fd_); }
  uint64_t size() const { return size_; }
  uint64_t floor() const { return floor_; }
  // The most that may be written at once.
  uint64_t largest_write() const;

 private:
  void FreeBelow(uint64_t offset);

  const LogQuota quota_;
  LogFloor* const floors_;
  const size_t stream_;
  UniqueFd fd_;
  uint64_t size_ = 0;
  uint64_t acked_ = 0;
  uint64_t floor_ = 0;
};

}  // namespace muster::shim
