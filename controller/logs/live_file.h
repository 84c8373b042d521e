#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/unique_fd.h"
#include "controller/logs/log_source.h"

namespace muster::logs {

// Files that the log organ holds open, so that thousands of ranks don't use up the process's
// descriptors.
using OpenFiles = std::atomic<int>;

// How a log is rotated (segments.h).
struct Rotation {
  uint64_t bytes = 0;  // 0 = never
  // A segment is to be packed. Must not block; any thread.
  std::function<void(const std::string& path)> pack;
};

// The writing end of a log that may be rotated: offsets count in the whole log. The owner knows the
// log's size and locks.
class LiveFile {
 public:
  // `open_files` and `rotation` outlive the object.
  LiveFile(std::string path, const Rotation& rotation, OpenFiles& open_files);
  ~LiveFile();
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  // Makes the file, or takes up what a former process left; segments that it had no time to pack
  // are handed over. The log's size.
  absl::StatusOr<uint64_t> Recover();

  // Writes from `offset` on, which is not below base(). `written` as in WriteAt.
  absl::Status Write(uint64_t offset, std::string_view data, size_t& written);
  // Cuts the log to `size`, not below base().
  absl::Status CutTo(uint64_t size);
  // Up to `size` bytes from `offset` on, wherever they are.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size);
  // Begins a new file when the old one has reached its limit and `size`, the log's, is a good
  // place: the end of a line, or a MiB beyond the limit. What the old one holds is on disk then.
  // True if it did.
  absl::StatusOr<bool> MaybeRotate(uint64_t size);

  // The file, opened when it is not. Stays open as long as somebody holds it.
  absl::StatusOr<std::shared_ptr<const UniqueFd>> Fd();
  void Close();

  const std::string& path() const { return source_.path(); }
  // The first byte that is not in a segment.
  uint64_t base() const { return base_; }

 private:
  const LogSource source_;
  const Rotation& rotation_;
  OpenFiles& open_files_;
  std::shared_ptr<const UniqueFd> fd_;
  uint64_t base_ = 0;
};

}  // namespace muster::logs
