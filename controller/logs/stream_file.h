#pragma once

#include <absl/status/status.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/times_format.h"
#include "common/unique_fd.h"
#include "controller/logs/gaps.h"
#include "controller/logs/live_file.h"
#include "controller/logs/times_file.h"
#include "muster/v1/worker.pb.h"

namespace muster::logs {

// One stream of one rank on the controller's disk: `stdout.log` and `stdout.times`. Grows only at
// its end; what is there is never changed. Sizes are the file's, but for the two that say `stream`:
// they differ once the node has dropped bytes (Gaps). All count in the whole log, whatever rotation
// has made of it. The owner locks.
class StreamFile {
 public:
  // `rotation` and `open_files` outlive the object.
  StreamFile(std::string folder, v1::Stream stream, const Rotation& rotation,
             OpenFiles& open_files);
  ~StreamFile();
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;

  // Makes the files, or takes up what a former process left.
  absl::Status Recover();

  // Writes the part of `data` that lies at or above stream_size(); `offset` and times count in the
  // stream. The `lost` bytes below `offset` are gone for the reason given (none: the node's quota):
  // a marker takes their place. OutOfRange: other bytes are missing. Other errors: the disk; what
  // got through counts, and the rest must come again.
  absl::Status Append(uint64_t offset, std::string_view data, const std::vector<TimesRecord>& times,
                      uint64_t lost = 0, const std::string& lost_why = "");

  // Forgets bytes above durable(): after a failed sync nobody knows what of them is on disk.
  absl::Status Rewind();

  // The log file, opened when it is not. Stays open as long as somebody holds it.
  absl::StatusOr<std::shared_ptr<const UniqueFd>> LogFd() { return log_.Fd(); }
  // Up to `size` bytes from `offset` on, also of older parts.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) { return log_.Read(offset, size); }
  // Lets go of the files; they are opened again when needed.
  void Close();

  const std::string& path() const { return log_.path(); }
  const std::string& folder() const { return folder_; }
  v1::Stream stream() const { return stream_; }
  uint64_t size() const { return size_; }
  uint64_t durable() const { return durable_; }
  // Rotation may have made more durable meanwhile.
  void set_durable(uint64_t size) { durable_ = std::max(durable_, size); }
  uint64_t stream_size() const { return gaps_.ToStream(size_); }
  uint64_t stream_durable() const { return gaps_.ToStream(durable_); }
  uint64_t lost() const { return gaps_.lost(); }

 private:
  absl::Status OpenTimes();
  absl::Status AddGap(uint64_t lost, const std::string& why);

  const std::string folder_;
  const v1::Stream stream_;
  const std::string times_path_;
  OpenFiles& open_files_;

  LiveFile log_;
  UniqueFd times_fd_;
  TimesTail times_;
  Gaps gaps_;
  uint64_t size_ = 0;
  uint64_t durable_ = 0;
};

}  // namespace muster::logs
