#include "controller/logs/stream_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

constexpr int kOpenFlags = O_RDWR | O_CREAT;

}  // namespace

StreamFile::StreamFile(std::string folder, v1::Stream stream, OpenFiles& open_files)
    : folder_(std::move(folder)),
      stream_(stream),
      log_path_(folder_ + "/" + LogName(stream)),
      times_path_(folder_ + "/" + TimesName(stream)),
      open_files_(open_files) {}

StreamFile::~StreamFile() {
  Close();
}

absl::StatusOr<std::shared_ptr<const UniqueFd>> StreamFile::LogFd() {
  if (!log_fd_) {
    MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(log_path_, kOpenFlags));
    log_fd_ = std::make_shared<const UniqueFd>(std::move(fd));
    ++open_files_;
  }
  return log_fd_;
}

absl::Status StreamFile::OpenTimes() {
  if (times_fd_) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(times_fd_, OpenFile(times_path_, kOpenFlags));
  ++open_files_;
  return absl::OkStatus();
}

void StreamFile::Close() {
  if (log_fd_) --open_files_;
  if (times_fd_) --open_files_;
  log_fd_.reset();
  times_fd_.reset();
}

absl::Status StreamFile::Recover() {
  MUSTER_ASSIGN_OR_RETURN(const auto log, LogFd());
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  MUSTER_ASSIGN_OR_RETURN(size_, FileSize(log->get(), log_path_));
  MUSTER_ASSIGN_OR_RETURN(times_, RepairTimes(times_fd_.get(), size_, times_path_));
  durable_ = 0;  // the former process may have died between write and sync
  return absl::OkStatus();
}

absl::Status StreamFile::Append(uint64_t offset, std::string_view data,
                                const std::vector<TimesRecord>& times) {
  if (offset > size_) {
    return absl::OutOfRangeError(log_path_ + ": bytes " + std::to_string(size_) + " to " +
                                 std::to_string(offset) + " are missing");
  }
  const uint64_t known = size_ - offset;
  if (known >= data.size()) return absl::OkStatus();
  data.remove_prefix(known);
  MUSTER_ASSIGN_OR_RETURN(const auto log, LogFd());
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  // Times first: a byte in the log always has its time, and times without bytes are cut off by
  // Recover.
  MUSTER_RETURN_IF_ERROR(AppendTimes(times_fd_.get(), times, times_, times_path_));
  size_t written = 0;
  absl::Status status = WriteAt(log->get(), size_, data, log_path_, written);
  size_ += written;
  return status;
}

absl::Status StreamFile::Rewind() {
  size_ = durable_;  // whatever follows fails or not: the next Append writes from here on
  MUSTER_ASSIGN_OR_RETURN(const auto log, LogFd());
  if (ftruncate(log->get(), static_cast<off_t>(durable_)) != 0) {
    return PosixError("truncate " + log_path_);
  }
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  MUSTER_ASSIGN_OR_RETURN(times_, RepairTimes(times_fd_.get(), size_, times_path_));
  return absl::OkStatus();
}

}  // namespace muster::logs
