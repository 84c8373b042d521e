#include "controller/logs/live_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/segments.h"

namespace muster::logs {
namespace {

// How far beyond its limit a file may go to end with a line.
constexpr uint64_t kPatience = 1 << 20;

}  // namespace

LiveFile::LiveFile(std::string path, const Rotation& rotation, OpenFiles& open_files)
    : source_(std::move(path)), rotation_(rotation), open_files_(open_files) {}

LiveFile::~LiveFile() {
  Close();
}

absl::StatusOr<std::shared_ptr<const UniqueFd>> LiveFile::Fd() {
  if (!fd_) {
    MUSTER_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(path(), O_RDWR | O_CREAT));
    fd_ = std::make_shared<const UniqueFd>(std::move(fd));
    ++open_files_;
  }
  return fd_;
}

void LiveFile::Close() {
  if (fd_) --open_files_;
  fd_.reset();
}

absl::StatusOr<uint64_t> LiveFile::Recover() {
  const std::vector<Segment> segments = FindSegments(path());
  base_ = segments.empty() ? 0 : segments.back().end;
  for (const Segment& segment : segments) {
    // A crash may have left the plain form beside the packed one.
    const std::string plain = SegmentPath(path(), segment.begin, segment.end);
    if (rotation_.pack && access(plain.c_str(), F_OK) == 0) rotation_.pack(plain);
  }
  MUSTER_ASSIGN_OR_RETURN(const auto fd, Fd());
  MUSTER_ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd->get(), path()));
  return base_ + size;
}

absl::Status LiveFile::Write(uint64_t offset, std::string_view data, size_t& written) {
  written = 0;
  MUSTER_ASSIGN_OR_RETURN(const auto fd, Fd());
  return WriteAt(fd->get(), offset - base_, data, path(), written);
}

absl::Status LiveFile::CutTo(uint64_t size) {
  if (size < base_) return absl::InternalError(path() + ": its older parts can't be cut");
  MUSTER_ASSIGN_OR_RETURN(const auto fd, Fd());
  if (ftruncate(fd->get(), static_cast<off_t>(size - base_)) != 0) {
    return PosixError("truncate " + path());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> LiveFile::Read(uint64_t offset, size_t size) {
  if (offset < base_) return source_.ReadAt(offset, size);
  MUSTER_ASSIGN_OR_RETURN(const auto fd, Fd());
  return ReadAt(fd->get(), offset - base_, size, path());
}

absl::StatusOr<bool> LiveFile::MaybeRotate(uint64_t size) {
  if (rotation_.bytes == 0 || size < base_ + rotation_.bytes) return false;
  if (size < base_ + rotation_.bytes + kPatience) {
    MUSTER_ASSIGN_OR_RETURN(const std::string last, Read(size - 1, 1));
    if (last != "\n") return false;
  }
  MUSTER_ASSIGN_OR_RETURN(const auto fd, Fd());
  if (fdatasync(fd->get()) != 0) return PosixError("sync " + path());
  const std::string segment = SegmentPath(path(), base_, size);
  if (rename(path().c_str(), segment.c_str()) != 0) return PosixError("rename " + path());
  Close();
  base_ = size;
  MUSTER_RETURN_IF_ERROR(Fd().status());
  MUSTER_RETURN_IF_ERROR(SyncDir(path().substr(0, path().rfind('/'))));
  if (rotation_.pack) rotation_.pack(segment);
  return true;
}

}  // namespace muster::logs
