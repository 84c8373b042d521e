#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/times_format.h"
#include "common/unique_fd.h"
#include "controller/logs/times_file.h"
#include "muster/v1/worker.pb.h"

namespace muster::logs {

// Files that the log organ holds open, so that thousands of ranks don't use up the process's
// descriptors.
using OpenFiles = std::atomic<int>;

// One stream of one rank on the controller's disk: `stdout.log` and `stdout.times`. Grows only at
// its end; what is there is never changed. The owner locks.
class StreamFile {
 public:
  // `open_files` outlives the object.
  StreamFile(std::string folder, v1::Stream stream, OpenFiles& open_files);
  ~StreamFile();
  StreamFile(const StreamFile&) = delete;
  StreamFile& operator=(const StreamFile&) = delete;

  // Makes the files, or takes up what a former process left.
  absl::Status Recover();

  // Writes the part of `data` that lies at or above size(). OutOfRange: it begins above size(), so
  // bytes are missing. Other errors: the disk; what got through counts, and the rest must come
  // again.
  absl::Status Append(uint64_t offset, std::string_view data,
                      const std::vector<TimesRecord>& times);

  // Forgets bytes above durable(): after a failed sync nobody knows what of them is on disk.
  absl::Status Rewind();

  // The log file, opened when it is not. Stays open as long as somebody holds it.
  absl::StatusOr<std::shared_ptr<const UniqueFd>> LogFd();
  // Lets go of the files; they are opened again when needed.
  void Close();

  const std::string& path() const { return log_path_; }
  const std::string& folder() const { return folder_; }
  v1::Stream stream() const { return stream_; }
  uint64_t size() const { return size_; }
  uint64_t durable() const { return durable_; }
  void set_durable(uint64_t size) { durable_ = size; }

 private:
  absl::Status OpenTimes();

  const std::string folder_;
  const v1::Stream stream_;
  const std::string log_path_;
  const std::string times_path_;
  OpenFiles& open_files_;

  std::shared_ptr<const UniqueFd> log_fd_;
  UniqueFd times_fd_;
  TimesTail times_;
  uint64_t size_ = 0;
  uint64_t durable_ = 0;
};

}  // namespace muster::logs
