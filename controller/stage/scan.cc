#include "controller/stage/scan.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "common/read_at.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/unique_fd.h"
#include "controller/stage/ignore.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;

constexpr char kIgnoreFile[] = ".musterignore";
constexpr uint64_t kMaxIgnoreBytes = 1 << 20;
constexpr size_t kMaxEntries = 2'000'000;
constexpr unsigned kMostThreads = 4;

struct Found {
  v1::TreeEntry entry;
  std::string path;  // absolute
};

absl::Status Refuse(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(path + ": " + why);
}

class Walk {
 public:
  explicit Walk(const std::atomic<bool>& stop) : stop_(stop) {}

  // A folder's content goes below `prefix` ("" or "name/").
  absl::Status AddFolder(const std::string& folder, const std::string& prefix) {
    IgnoreRules rules = IgnoreRules::Defaults();
    const std::string file = folder + "/" + kIgnoreFile;
    // Non-blocking: what is called so may be a pipe.
    const UniqueFd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info;
    if (fd && fstat(fd.get(), &info) == 0) {
      if (!S_ISREG(info.st_mode)) return Refuse(file, "is no plain file");
      if (static_cast<uint64_t>(info.st_size) > kMaxIgnoreBytes)
        return Refuse(file, "larger than 1 MiB");
      MUSTER_ASSIGN_OR_RETURN(const std::string text,
                              ReadAt(fd.get(), 0, static_cast<uint64_t>(info.st_size), file));
      rules.Add(text);
    } else if (!fd && errno != ENOENT) {
      return PosixError("open " + file);
    }
    return Descend(folder, prefix, "", rules);
  }

  absl::Status AddOne(const std::string& path, const std::string& name) {
    struct stat info;
    if (lstat(path.c_str(), &info) != 0) return Refuse(path, std::strerror(errno));
    if (found_.size() >= kMaxEntries)
      return Refuse(path, absl::StrCat("the tree has more than ", kMaxEntries, " entries"));
    Found& found = found_.emplace_back();
    found.path = path;
    found.entry.set_path(name);
    found.entry.set_mode(info.st_mode & 0777);  // setuid and the like stay behind
    if (S_ISREG(info.st_mode)) {
      found.entry.set_kind(v1::TREE_KIND_FILE);
      found.entry.set_size(static_cast<uint64_t>(info.st_size));
    } else if (S_ISDIR(info.st_mode)) {
      found.entry.set_kind(v1::TREE_KIND_FOLDER);
    } else if (S_ISLNK(info.st_mode)) {
      std::error_code error;
      found.entry.set_target(fs::read_symlink(path, error).string());
      if (error) return Refuse(path, error.message());
      found.entry.set_kind(v1::TREE_KIND_SYMLINK);
      found.entry.set_mode(0);
    } else {
      const char* const kind = S_ISSOCK(info.st_mode)   ? "a socket"
                               : S_ISFIFO(info.st_mode) ? "a named pipe"
                                                        : "a device";
      return Refuse(path, absl::StrCat(kind, " can't be staged; leave it out in ", kIgnoreFile));
    }
    return absl::OkStatus();
  }

  std::vector<Found>& found() { return found_; }
  uint32_t ignored() const { return ignored_; }

 private:
  absl::Status Descend(const std::string& folder, const std::string& prefix,
                       const std::string& below, const IgnoreRules& rules) {
    if (stop_) return absl::CancelledError("ended");
    std::error_code error;
    fs::directory_iterator items(folder, error);
    if (error) return Refuse(folder, error.message());
    for (; items != fs::directory_iterator(); items.increment(error)) {
      const std::string path = items->path().string();
      const std::string name = below + items->path().filename().string();
      const bool is_folder = items->is_directory(error) && !items->is_symlink(error);
      if (rules.Ignores(name, is_folder)) {
        ++ignored_;
        continue;
      }
      MUSTER_RETURN_IF_ERROR(AddOne(path, prefix + name));
      if (is_folder) MUSTER_RETURN_IF_ERROR(Descend(path, prefix, name + "/", rules));
    }
    if (error) return Refuse(folder, error.message());
    return absl::OkStatus();
  }

  const std::atomic<bool>& stop_;
  std::vector<Found> found_;
  uint32_t ignored_ = 0;
};

absl::Status Sum(Found& found, const std::atomic<bool>& stop) {
  const uint64_t size = found.entry.size();
  if (size == 0) return absl::OkStatus();
  const UniqueFd fd(open(found.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return Refuse(found.path, std::strerror(errno));
  std::string sums;
  for (uint64_t offset = 0; offset < size; offset += kPieceBytes) {
    if (stop) return absl::CancelledError("ended");
    MUSTER_ASSIGN_OR_RETURN(
        const std::string bytes,
        ReadAt(fd.get(), offset, std::min(kPieceBytes, size - offset), found.path));
    sums += Sha256(bytes);
  }
  found.entry.set_sums(std::move(sums));
  return absl::OkStatus();
}

absl::Status SumAll(std::vector<Found>& found, const std::atomic<bool>& stop) {
  std::atomic<size_t> next{0};
  absl::Mutex mutex;
  absl::Status first = absl::OkStatus();
  const auto work = [&] {
    for (size_t i = next++; i < found.size(); i = next++) {
      if (found[i].entry.kind() != v1::TREE_KIND_FILE) continue;
      const absl::Status status = Sum(found[i], stop);
      if (status.ok()) continue;
      absl::MutexLock lock(&mutex);
      if (first.ok()) first = status;
      next = found.size();
    }
  };
  std::vector<std::thread> threads;
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  for (unsigned i = 1; i < count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return first;
}

absl::Status WalkAll(const std::vector<std::string>& paths, Walk& walk) {
  std::error_code error;
  if (paths.size() == 1 && fs::is_directory(paths.front(), error))
    return walk.AddFolder(paths.front(), "");
  std::set<std::string> names;
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename().string();
    if (name.empty() || name == "." || name == "..") return Refuse(path, "has no name of its own");
    if (!names.insert(name).second)
      return Refuse(path, "another path that was given is called " + name + " too");
    const bool folder = fs::is_directory(path, error) && !fs::is_symlink(path, error);
    MUSTER_RETURN_IF_ERROR(walk.AddOne(path, name));
    if (folder) MUSTER_RETURN_IF_ERROR(walk.AddFolder(path, name + "/"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ScannedTree> ScanTree(const std::vector<std::string>& paths,
                                     const std::atomic<bool>& stop) {
  Walk walk(stop);
  MUSTER_RETURN_IF_ERROR(WalkAll(paths, walk));
  std::vector<Found>& found = walk.found();
  if (found.empty()) return Refuse(paths.front(), "there is nothing in it to stage");
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.entry.path() < b.entry.path(); });
  MUSTER_RETURN_IF_ERROR(SumAll(found, stop));
  v1::TreeManifest manifest;
  manifest.set_format(kTreeFormat);
  ScannedTree scanned;
  for (Found& one : found) {
    *manifest.add_entries() = std::move(one.entry);
    scanned.paths.push_back(std::move(one.path));
  }
  // Before a message is made that protobuf could not even hold.
  if (manifest.ByteSizeLong() > kMaxManifestBytes) return Tree::TooLarge(manifest.ByteSizeLong());
  scanned.manifest = manifest.SerializeAsString();
  scanned.ignored = walk.ignored();
  MUSTER_ASSIGN_OR_RETURN(scanned.tree, Tree::Parse(scanned.manifest));
  return scanned;
}

}  // namespace muster::stage
