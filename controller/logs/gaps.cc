#include "controller/logs/gaps.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "common/status.h"
#include "controller/logs/file_io.h"

namespace muster::logs {
namespace {

constexpr uint64_t kMaxFile = 1 << 20;

}  // namespace

absl::StatusOr<uint64_t> Gaps::Recover(uint64_t file_size) {
  gaps_.clear();
  const absl::StatusOr<UniqueFd> fd = OpenFile(path_, O_RDONLY);
  if (absl::IsNotFound(fd.status())) return file_size;
  MUSTER_RETURN_IF_ERROR(fd.status());
  MUSTER_ASSIGN_OR_RETURN(const std::string text, ReadAt(fd->get(), 0, kMaxFile, path_));
  std::istringstream in(text.substr(0, text.rfind('\n') + 1));
  Gap gap;
  while (in >> gap.at >> gap.lost >> gap.marker) {
    if (gap.at + gap.marker > file_size) {
      // The marker was on its way, or was lost again with bytes that no sync had kept.
      MUSTER_RETURN_IF_ERROR(WriteAll());
      return std::min(file_size, gap.at);
    }
    gaps_.push_back(gap);
  }
  return file_size;
}

absl::Status Gaps::Add(const Gap& gap) {
  gaps_.push_back(gap);
  absl::Status status = WriteAll();
  if (!status.ok()) gaps_.pop_back();
  return status;
}

// Anew each time: gaps are few, and a file that is replaced whole is never torn.
absl::Status Gaps::WriteAll() const {
  std::string text;
  for (const Gap& gap : gaps_) {
    text += std::to_string(gap.at) + ' ' + std::to_string(gap.lost) + ' ' +
            std::to_string(gap.marker) + '\n';
  }
  const std::string temporary = path_ + ".tmp";
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  size_t written = 0;
  MUSTER_RETURN_IF_ERROR(WriteAt(fd.get(), 0, text, temporary, written));
  if (fdatasync(fd.get()) != 0) return PosixError("sync " + temporary);
  if (rename(temporary.c_str(), path_.c_str()) != 0) return PosixError("rename " + temporary);
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
