#include "controller/logs/retention.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <tuple>
#include <utility>
#include <vector>

#include "common/status.h"
#include "controller/logs/fs_user.h"
#include "controller/logs/layout.h"
#include "controller/logs/segments.h"

namespace muster::logs {
namespace {

namespace fs = std::filesystem;

// Files that go together, and when their turn comes: the lowest first.
struct Candidate {
  std::vector<std::string> paths;
  uint64_t bytes = 0;
  std::tuple<int, uint32_t, uint64_t> turn;  // class, attempt, within it
};
enum Class { kDerived, kPart, kStream };

bool Plain(const std::string& path, uint64_t& bytes) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  bytes = static_cast<uint64_t>(info.st_blocks) * 512;
  return true;
}

// Of one stream in `ranks/attempt_<k>/<rank>/`: its older parts one by one, then the rest at once.
// The newest part tells where the live file begins, so those two belong together.
void AddStream(const fs::path& folder, v1::Stream stream, uint32_t attempt,
               std::vector<Candidate>& out) {
  const std::string log = folder / LogName(stream);
  Candidate rest;
  uint64_t bytes = 0;
  const std::vector<Segment> segments = FindSegments(log);
  for (size_t i = 0; i < segments.size(); ++i) {
    Candidate part{.paths = {}, .bytes = 0, .turn = {kPart, attempt, segments[i].begin}};
    // A crash may have left more than one form of it.
    const std::string plain = SegmentPath(log, segments[i].begin, segments[i].end);
    for (const std::string& path : {plain, plain + ".zst", plain + ".zst.tmp"}) {
      if (!Plain(path, bytes)) continue;
      part.paths.push_back(path);
      part.bytes += bytes;
    }
    if (i + 1 < segments.size()) {
      out.push_back(std::move(part));
    } else {
      rest.paths = std::move(part.paths);
      rest.bytes = part.bytes;
    }
  }
  for (const std::string& name : {LogName(stream), TimesName(stream), GapsName(stream)}) {
    const std::string path = folder / name;
    if (!Plain(path, bytes)) continue;
    rest.paths.push_back(path);
    rest.bytes += bytes;
  }
  rest.turn = {kStream, attempt, UINT64_MAX - rest.bytes};
  if (!rest.paths.empty()) out.push_back(std::move(rest));
}

// The numbered entries of a folder: `attempt_3` with the prefix, `17` without.
std::vector<std::pair<uint32_t, fs::path>> Numbered(const fs::path& folder,
                                                    const std::string& prefix) {
  std::vector<std::pair<uint32_t, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    absl::string_view digits = name;
    uint32_t number = 0;
    if (!absl::ConsumePrefix(&digits, prefix) || !absl::SimpleAtoi(digits, &number)) continue;
    if (fs::is_symlink(it->symlink_status(error)) || !fs::is_directory(it->path(), error)) continue;
    found.emplace_back(number, it->path());
  }
  return found;
}

std::vector<Candidate> Candidates(const std::string& output_dir) {
  std::vector<Candidate> out;
  std::error_code error;
  for (fs::directory_iterator it(output_dir, error), end; !error && it != end;
       it.increment(error)) {
    Candidate file{.paths = {it->path().string()}, .bytes = 0, .turn = {kDerived, 0, 0}};
    const std::string name = it->path().filename();
    if (!absl::StrContains(name, ".log.") || !Plain(file.paths[0], file.bytes)) continue;
    out.push_back(std::move(file));
  }
  for (const auto& [attempt, folder] : Numbered(output_dir + "/ranks", "attempt_")) {
    for (const auto& [rank, rank_folder] : Numbered(folder, "")) {
      for (const v1::Stream stream : kStreams) AddStream(rank_folder, stream, attempt, out);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Candidate& a, const Candidate& b) { return a.turn < b.turn; });
  return out;
}

absl::Status Remove(const Candidate& candidate) {
  for (const std::string& path : candidate.paths) {
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return PosixError("remove " + path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PruneLogs(const std::string& output_dir, const Retention& retention, uint32_t uid,
                       uint32_t gid) {
  if (!retention.remove_all && retention.keep_bytes == 0) return absl::OkStatus();
  const ScopedFsUser user(uid, gid);
  const std::vector<Candidate> candidates = Candidates(output_dir);
  uint64_t left = 0;
  for (const Candidate& file : candidates) left += file.bytes;
  for (const Candidate& file : candidates) {
    if (!retention.remove_all && left <= retention.keep_bytes) break;
    MUSTER_RETURN_IF_ERROR(Remove(file));
    left -= file.bytes;
  }
  return absl::OkStatus();
}

}  // namespace muster::logs
