#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>

namespace muster::logs {

// A log as one run of bytes, whatever rotation has made of it. Files are opened only for the moment
// of a read, so that who reads thousands of streams needs few descriptors. One thread.
class LogSource {
 public:
  explicit LogSource(std::string path) : path_(std::move(path)) {}

  // Up to `size` bytes from `offset` on; fewer only at the end. OutOfRange: retention has removed
  // what was there; First() tells where the rest begins.
  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t size) const;
  // All bytes, also those that were removed; 0 for a log that is not there.
  absl::StatusOr<uint64_t> Size() const;
  // The first byte that is still there.
  absl::StatusOr<uint64_t> First() const;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace muster::logs
