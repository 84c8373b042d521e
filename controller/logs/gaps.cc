#include "controller/logs/gaps.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "common/status.h"
#include "controller/logs/file_io.h"

namespace muster::logs {
namespace {

// Cuts the file to what counts: a line that does not must not come to count when the log has grown.
absl::Status CutTo(int fd, uint64_t bytes, const std::string& path) {
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return PosixError("truncate " + path);
  if (fdatasync(fd) != 0) return PosixError("sync " + path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<uint64_t> Gaps::Recover(uint64_t file_size) {
  gaps_.clear();
  bytes_ = 0;
  const absl::StatusOr<UniqueFd> fd = OpenFile(path_, O_RDWR);
  if (absl::IsNotFound(fd.status())) return file_size;
  MUSTER_RETURN_IF_ERROR(fd.status());
  MUSTER_ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd->get(), path_));
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadAt(fd->get(), 0, size, path_));
  uint64_t log_size = file_size;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', bytes_)) {
    std::istringstream line(text.substr(bytes_, end - bytes_));
    Gap gap;
    if (!(line >> gap.at >> gap.lost >> gap.marker)) break;
    if (gap.at + gap.marker > file_size) {
      // The marker was on its way, or was lost again with bytes that no sync had kept.
      log_size = std::min(file_size, gap.at);
      break;
    }
    gaps_.push_back(gap);
    bytes_ = end + 1;
  }
  if (bytes_ < size) MUSTER_RETURN_IF_ERROR(CutTo(fd->get(), bytes_, path_));
  return log_size;
}

absl::Status Gaps::Add(const Gap& gap) {
  const bool first = bytes_ == 0;
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path_, O_RDWR | O_CREAT));
  const std::string line = std::to_string(gap.at) + ' ' + std::to_string(gap.lost) + ' ' +
                           std::to_string(gap.marker) + '\n';
  size_t written = 0;
  absl::Status status = WriteAt(fd.get(), bytes_, line, path_, written);
  if (status.ok() && fdatasync(fd.get()) != 0) status = PosixError("sync " + path_);
  if (status.ok() && first) status = SyncDir(path_.substr(0, path_.rfind('/')));
  if (!status.ok()) {
    if (!CutTo(fd.get(), bytes_, path_).ok()) return Annotate(status, "and could not be cut back");
    return status;
  }
  gaps_.push_back(gap);
  bytes_ += line.size();
  return absl::OkStatus();
}

uint64_t Gaps::ToStream(uint64_t file_offset) const {
  uint64_t stream = file_offset;
  for (const Gap& gap : gaps_) {
    if (file_offset <= gap.at) break;
    const uint64_t inside = std::min(file_offset - gap.at, gap.marker);
    stream -= inside;
    if (inside == gap.marker) stream += gap.lost;
  }
  return stream;
}

uint64_t Gaps::lost() const {
  uint64_t lost = 0;
  for (const Gap& gap : gaps_) lost += gap.lost;
  return lost;
}

}  // namespace muster::logs
