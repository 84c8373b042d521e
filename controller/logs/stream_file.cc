#include "controller/logs/stream_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "common/loss_marker.h"
#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/layout.h"

namespace muster::logs {
namespace {

constexpr char kQuota[] = "dropped on its node, the log quota was full";
constexpr size_t kMaxWhy = 200;
constexpr int kOpenFlags = O_RDWR | O_CREAT;

}  // namespace

StreamFile::StreamFile(std::string folder, v1::Stream stream, const Rotation& rotation,
                       OpenFiles& open_files)
    : folder_(std::move(folder)),
      stream_(stream),
      times_path_(folder_ + "/" + TimesName(stream)),
      open_files_(open_files),
      log_(folder_ + "/" + LogName(stream), rotation, open_files),
      gaps_(folder_ + "/" + GapsName(stream)) {}

StreamFile::~StreamFile() {
  Close();
}

absl::Status StreamFile::OpenTimes() {
  if (times_fd_) return absl::OkStatus();
  MUSTER_ASSIGN_OR_RETURN(times_fd_, OpenFile(times_path_, kOpenFlags));
  ++open_files_;
  return absl::OkStatus();
}

void StreamFile::Close() {
  log_.Close();
  if (times_fd_) --open_files_;
  times_fd_.reset();
}

absl::Status StreamFile::Recover() {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t found, log_.Recover());
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  MUSTER_ASSIGN_OR_RETURN(size_, gaps_.Recover(found));
  if (size_ < found) MUSTER_RETURN_IF_ERROR(log_.CutTo(size_));
  MUSTER_ASSIGN_OR_RETURN(times_, RepairTimes(times_fd_.get(), size_, times_path_));
  durable_ = 0;  // the former process may have died between write and sync
  return absl::OkStatus();
}

absl::Status StreamFile::Append(uint64_t offset, std::string_view data,
                                const std::vector<TimesRecord>& times, uint64_t lost,
                                const std::string& lost_why) {
  const uint64_t position = stream_size();
  if (offset > position && offset - position <= lost) {
    MUSTER_RETURN_IF_ERROR(AddGap(offset - position, lost_why.empty() ? kQuota : lost_why));
  } else if (offset > position) {
    return absl::OutOfRangeError(path() + ": bytes " + std::to_string(position) + " to " +
                                 std::to_string(offset) + " are missing");
  }
  const uint64_t known = stream_size() - offset;
  if (known >= data.size()) return absl::OkStatus();
  data.remove_prefix(known);
  MUSTER_ASSIGN_OR_RETURN(const bool rotated, log_.MaybeRotate(size_));
  if (rotated) durable_ = size_;
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  // Times first: a byte in the log always has its time, and times without bytes are cut off by
  // Recover.
  const uint64_t shift = stream_size() - size_;
  std::vector<TimesRecord> in_file;
  for (const TimesRecord& record : times) {
    if (!gaps_.empty() && record.offset < stream_size()) continue;  // it may be before a gap
    in_file.push_back({.offset = record.offset - shift, .realtime_ns = record.realtime_ns});
  }
  MUSTER_RETURN_IF_ERROR(AppendTimes(times_fd_.get(), in_file, times_, times_path_));
  size_t written = 0;
  absl::Status status = log_.Write(size_, data, written);
  size_ += written;
  return status;
}

// The gap is on disk before its marker is begun: a torn marker is cut off by Recover.
absl::Status StreamFile::AddGap(uint64_t lost, const std::string& why) {
  bool line_begins = size_ == 0;
  if (size_ > 0) {
    MUSTER_ASSIGN_OR_RETURN(const std::string last, log_.Read(size_ - 1, 1));
    line_begins = !last.empty() && last.back() == '\n';
  }
  const std::string marker =
      LossMarker(lost, why.substr(0, kMaxWhy), line_begins, stream_ == v1::STREAM_EVENTS);
  MUSTER_RETURN_IF_ERROR(gaps_.Add({.at = size_, .lost = lost, .marker = marker.size()}));
  size_t written = 0;
  const absl::Status status = log_.Write(size_, marker, written);
  if (status.ok()) {
    size_ += written;
    return status;
  }
  if (!log_.CutTo(size_).ok()) return Annotate(status, "and could not be cut back");
  MUSTER_RETURN_IF_ERROR(gaps_.Recover(size_).status());
  return status;
}

absl::Status StreamFile::Rewind() {
  size_ = durable_;  // whatever follows fails or not: the next Append writes from here on
  MUSTER_ASSIGN_OR_RETURN(durable_, gaps_.Recover(durable_));
  size_ = durable_;
  MUSTER_RETURN_IF_ERROR(log_.CutTo(durable_));
  MUSTER_RETURN_IF_ERROR(OpenTimes());
  MUSTER_ASSIGN_OR_RETURN(times_, RepairTimes(times_fd_.get(), size_, times_path_));
  return absl::OkStatus();
}

}  // namespace muster::logs
