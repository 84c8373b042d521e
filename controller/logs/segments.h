#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Rotation (docs/logs.md): a log file that has grown to its limit is renamed to a segment beside
// it, `stdout.log.<begin>-<end>`, and a new one begins under the old name. `begin` (15 digits, so
// that `ls` sorts) and `end` are the segment's offsets in the whole log. Segments are packed with
// zstd in the background: `...-<end>.zst`, independent frames of kFrameBytes, so that `cat
// <(zstdcat stdout.log.*.zst) stdout.log` is the whole log and any part can be read without
// unpacking the rest. Any thread.

namespace muster::logs {

inline constexpr size_t kFrameBytes = 128 << 10;

struct Segment {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string path;
  bool packed = false;
};

// The segments of `log_path`, ascending: the last run of them without a hole, packed where both
// forms are there.
std::vector<Segment> FindSegments(const std::string& log_path);

std::string SegmentPath(const std::string& log_path, uint64_t begin, uint64_t end);

// Up to `size` bytes from `offset` (in the whole log) on, which must lie within the segment; not
// beyond its end. NotFound: it was packed or removed meanwhile.
absl::StatusOr<std::string> ReadSegment(const Segment& segment, uint64_t offset, size_t size);

// Packs one segment: a temporary file, fdatasync, rename, and the plain one goes. Repeatable after
// a crash at any point.
absl::Status PackSegment(const std::string& path);

}  // namespace muster::logs
