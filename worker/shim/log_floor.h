#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/unique_fd.h"

namespace muster::shim {

inline constexpr char kFloorFile[] = "floors";

// How much of each log's beginning is gone from this disk: the rank folder's `floors` file, one
// little-endian u64 a stream. The shim raises a floor before it frees what lies below, so whoever
// reads a log and then finds its floor at or below where he read has read what the rank wrote. It
// exists only where there is a quota. One thread a process.
class LogFloor {
 public:
  // For the shim: makes the file, or takes up what an earlier shim of this rank left. False with
  // errno.
  bool Create(const std::string& path);
  // For readers. False: there is none (yet), so nothing is gone.
  bool Open(const std::string& path);

  // False: it could not be written, and nothing may be freed.
  bool Raise(size_t stream, uint64_t floor);
  // 0 without a file.
  uint64_t Read(size_t stream) const;

  bool opened() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_;
};

}  // namespace muster::shim
