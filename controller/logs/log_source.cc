#include "controller/logs/log_source.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "common/status.h"
#include "controller/logs/file_io.h"
#include "controller/logs/segments.h"

namespace muster::logs {
namespace {

// Rotations that may happen under one read.
constexpr int kTries = 100;

// The segments, and the live file that follows them.
struct View {
  std::vector<Segment> segments;
  UniqueFd live;  // empty: there is none
  uint64_t base = 0;
};

absl::StatusOr<View> Look(const std::string& path) {
  for (int i = 0; i < kTries; ++i) {
    View view;
    auto live = OpenFile(path, O_RDONLY);
    if (!live.ok() && !absl::IsNotFound(live.status())) return live.status();
    if (live.ok()) view.live = *std::move(live);
    view.segments = FindSegments(path);
    view.base = view.segments.empty() ? 0 : view.segments.back().end;
    // While it is open its inode is not used again: the name still means it, so it was not renamed
    // before the segments were listed.
    struct stat opened {};
    struct stat named {};
    const bool there = stat(path.c_str(), &named) == 0;
    if (view.live) {
      if (fstat(view.live.get(), &opened) != 0) return PosixError("look at " + path);
      if (there && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) return view;
    } else if (!there) {
      return view;
    }
  }
  return absl::UnavailableError("read " + path + ": it is being rotated all the time");
}

}  // namespace

absl::StatusOr<std::string> LogSource::ReadAt(uint64_t offset, size_t size) const {
  std::string out;
  for (int i = 0; i < kTries && out.size() < size; ++i) {
    MUSTER_ASSIGN_OR_RETURN(const View view, Look(path_));
    const uint64_t from = offset + out.size();
    if (from >= view.base) {
      if (!view.live) break;
      MUSTER_ASSIGN_OR_RETURN(
          const std::string more,
          logs::ReadAt(view.live.get(), from - view.base, size - out.size(), path_));
      out += more;
      break;
    }
    if (from < view.segments.front().begin) {
      return absl::OutOfRangeError(path_ + ": what was written there has been removed");
    }
    for (const Segment& segment : view.segments) {
      if (from < segment.begin || from >= segment.end) continue;
      auto more = ReadSegment(segment, from, size - out.size());
      if (absl::IsNotFound(more.status())) break;  // packed meanwhile: look again
      MUSTER_RETURN_IF_ERROR(more.status());
      if (more->empty())
        return absl::DataLossError(segment.path + " is shorter than its name says");
      out += *more;
      break;
    }
  }
  return out;
}

absl::StatusOr<uint64_t> LogSource::Size() const {
  MUSTER_ASSIGN_OR_RETURN(const View view, Look(path_));
  if (!view.live) return view.base;
  MUSTER_ASSIGN_OR_RETURN(const uint64_t live, FileSize(view.live.get(), path_));
  return view.base + live;
}

absl::StatusOr<uint64_t> LogSource::First() const {
  MUSTER_ASSIGN_OR_RETURN(const View view, Look(path_));
  return view.segments.empty() ? 0 : view.segments.front().begin;
}

}  // namespace muster::logs
