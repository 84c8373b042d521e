#include "controller/logs/segments.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <utility>

#include "common/status.h"
#include "controller/logs/file_io.h"

namespace muster::logs {
namespace {

constexpr absl::string_view kPacked = ".zst";
constexpr int kLevel = 3;

std::optional<Segment> Parse(const std::string& folder, absl::string_view name,
                             absl::string_view log_name) {
  absl::string_view rest = name;
  Segment segment;
  if (!absl::ConsumePrefix(&rest, log_name) || !absl::ConsumePrefix(&rest, ".")) {
    return std::nullopt;
  }
  segment.packed = absl::ConsumeSuffix(&rest, kPacked);
  const size_t dash = rest.find('-');
  if (dash == absl::string_view::npos || !absl::SimpleAtoi(rest.substr(0, dash), &segment.begin) ||
      !absl::SimpleAtoi(rest.substr(dash + 1), &segment.end) || segment.end <= segment.begin) {
    return std::nullopt;
  }
  segment.path = absl::StrCat(folder, "/", name);
  return segment;
}

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

// A whole file in memory, as pages that the kernel may drop.
class Mapping {
 public:
  static absl::StatusOr<Mapping> Open(const std::string& path) {
    MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(path, O_RDONLY));
    MUSTER_ASSIGN_OR_RETURN(const uint64_t size, FileSize(fd.get(), path));
    Mapping mapping;
    if (size == 0) return mapping;
    void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) return PosixError("map " + path);
    mapping.data_ = static_cast<const char*>(data);
    mapping.size_ = size;
    return mapping;
  }
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }
  const char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  Mapping() = default;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

absl::StatusOr<std::string> ReadPacked(const Segment& segment, uint64_t offset, size_t size) {
  MUSTER_ASSIGN_OR_RETURN(const Mapping file, Mapping::Open(segment.path));
  const auto damaged = [&](const char* what) {
    return absl::DataLossError(segment.path + " is damaged: " + what);
  };
  std::string out;
  std::string frame;
  uint64_t begin = segment.begin;
  for (size_t at = 0; at < file.size() && out.size() < size;) {
    const size_t left = file.size() - at;
    const size_t packed = ZSTD_findFrameCompressedSize(file.data() + at, left);
    const unsigned long long plain = ZSTD_getFrameContentSize(file.data() + at, left);
    if (ZSTD_isError(packed) != 0 || plain == 0 || plain > kFrameBytes) return damaged("a frame");
    const uint64_t end = begin + plain;
    if (offset < end) {
      frame.resize(plain);
      const size_t got = ZSTD_decompress(frame.data(), frame.size(), file.data() + at, packed);
      if (ZSTD_isError(got) != 0 || got != plain) return damaged("its content");
      const auto skip = static_cast<size_t>(offset - begin);
      const size_t take = std::min(frame.size() - skip, size - out.size());
      out.append(frame, skip, take);
      offset += take;
    }
    begin = end;
    at += packed;
  }
  return out;
}

}  // namespace

std::string SegmentPath(const std::string& log_path, uint64_t begin, uint64_t end) {
  return absl::StrFormat("%s.%015d-%d", log_path, begin, end);
}

std::vector<Segment> FindSegments(const std::string& log_path) {
  const size_t slash = log_path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : log_path.substr(0, slash);
  const std::string log_name = log_path.substr(slash + 1);
  std::map<uint64_t, Segment> found;
  const std::unique_ptr<DIR, CloseDir> dir(opendir(folder.c_str()));
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    auto segment = Parse(folder, entry->d_name, log_name);
    if (!segment) continue;
    Segment& known = found[segment->begin];
    if (known.path.empty() || segment->packed) known = *std::move(segment);
  }
  std::vector<Segment> segments;
  for (auto& [begin, segment] : found) {
    if (!segments.empty() && segments.back().end != begin) segments.clear();
    segments.push_back(std::move(segment));
  }
  return segments;
}

absl::StatusOr<std::string> ReadSegment(const Segment& segment, uint64_t offset, size_t size) {
  if (segment.packed) return ReadPacked(segment, offset, size);
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd fd, OpenFile(segment.path, O_RDONLY));
  const uint64_t most = std::min<uint64_t>(size, segment.end - offset);
  return ReadAt(fd.get(), offset - segment.begin, static_cast<size_t>(most), segment.path);
}

absl::Status PackSegment(const std::string& path) {
  const std::string packed_path = absl::StrCat(path, kPacked);
  const std::string temporary = packed_path + ".tmp";
  const auto plain = OpenFile(path, O_RDONLY);
  if (absl::IsNotFound(plain.status())) return absl::OkStatus();  // done before
  MUSTER_RETURN_IF_ERROR(plain.status());
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd out, OpenFile(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  const std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> context(ZSTD_createCCtx(),
                                                                     &ZSTD_freeCCtx);
  std::string frame(ZSTD_compressBound(kFrameBytes), '\0');
  uint64_t from = 0;
  uint64_t to = 0;
  absl::Status status;
  while (status.ok()) {
    const auto data = ReadAt(plain->get(), from, kFrameBytes, path);
    if (!data.ok()) return data.status();
    if (data->empty()) break;
    const size_t size = ZSTD_compressCCtx(context.get(), frame.data(), frame.size(), data->data(),
                                          data->size(), kLevel);
    if (ZSTD_isError(size) != 0) {
      return absl::InternalError("pack " + path + ": " + ZSTD_getErrorName(size));
    }
    size_t written = 0;
    status = WriteAt(out.get(), to, std::string_view(frame).substr(0, size), temporary, written);
    from += data->size();
    to += size;
  }
  if (status.ok() && fdatasync(out.get()) != 0) status = PosixError("sync " + temporary);
  if (status.ok() && rename(temporary.c_str(), packed_path.c_str()) != 0) {
    status = PosixError("rename " + temporary);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
    return status;
  }
  // The packed form's name is on disk before the plain one goes.
  MUSTER_RETURN_IF_ERROR(SyncDir(path.substr(0, path.rfind('/'))));
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return PosixError("remove " + path);
  return absl::OkStatus();
}

}  // namespace muster::logs
