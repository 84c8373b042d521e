#include "worker/stage/prune.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "common/for_each_item.h"
#include "common/status.h"
#include "worker/stage/files.h"
#include "worker/stage/tree_files.h"
#include "worker/stage/versions.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kPartialLife(24);

// What is written by running a program rather than by a person.
bool IsByproduct(const fs::path& path) {
  return path.filename() == "__pycache__" || path.extension() == ".pyc";
}

// A file in the version's folder that is not of its tree; "" when there is none.
absl::StatusOr<std::string> ForeignFile(const Version& version) {
  MUSTER_ASSIGN_OR_RETURN(const std::string bytes,
                          ReadFile(version.folder + ".manifest", kMaxManifestBytes));
  MUSTER_ASSIGN_OR_RETURN(const Tree tree, Tree::Parse(bytes));
  std::set<std::string> own;
  for (const v1::TreeEntry& entry : tree.manifest().entries()) own.insert(entry.path());
  std::error_code error;
  auto it = fs::recursive_directory_iterator(version.folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (IsByproduct(it->path())) {
      it.disable_recursion_pending();
      continue;
    }
    std::string path = it->path().lexically_relative(version.folder).string();
    if (!own.contains(path)) return path;
  }
  // What could not be read may be anything.
  if (error && error != std::errc::no_such_file_or_directory)
    return PosixError("look through " + version.folder, error.value());
  return "";
}

// The version's lock, for one who is about to remove it and has `lock` already. FailedPrecondition:
// why it stays.
absl::StatusOr<UniqueFd> TakeOver(const Layout& layout) {
  auto use = LockFile(layout.use);
  if (absl::IsUnavailable(use.status())) return absl::FailedPreconditionError("a job uses it");
  MUSTER_RETURN_IF_ERROR(use.status());
  const std::string link = LinkTo(layout);
  if (!link.empty()) return absl::FailedPreconditionError(link + " leads to it");
  return use;
}

// All that belongs to it. The caller holds both of its locks.
absl::Status RemoveFiles(const Layout& layout) {
  // Without its manifest it is no version any more, whatever happens next.
  if (unlink(layout.manifest.c_str()) != 0 && errno != ENOENT)
    return PosixError("remove " + layout.manifest);
  unlink(layout.links.c_str());
  MUSTER_RETURN_IF_ERROR(RemoveTree(layout.version));
  MUSTER_RETURN_IF_ERROR(RemoveTree(layout.partial));
  unlink(layout.use.c_str());
  unlink(layout.lock.c_str());
  return absl::OkStatus();
}

// FailedPrecondition: why it stays.
absl::Status Remove(const std::string& state_dir, const Version& version) {
  const Layout layout(state_dir, version.content_id);
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd lock, LockFile(layout.lock));
  // Under the lock: a transfer of it may have ended just now, and made a link to it.
  struct stat info;
  if (lstat(layout.manifest.c_str(), &info) == 0 && Nanoseconds(info.st_mtim) != version.used_ns)
    return absl::FailedPreconditionError("it was staged again just now");
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd use, TakeOver(layout));
  MUSTER_ASSIGN_OR_RETURN(const std::string foreign, ForeignFile(version));
  if (!foreign.empty()) {
    return absl::FailedPreconditionError(foreign + " is not of the tree; move it away first");
  }
  return RemoveFiles(layout);
}

bool IsOld(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return false;
  const auto age = std::chrono::system_clock::now().time_since_epoch() -
                   std::chrono::nanoseconds(Nanoseconds(info.st_mtim));
  return age > kPartialLife;
}

// The manifest is there and is not that of the version: it can be neither used nor mended. What
// can't be read now may be sound.
bool IsDamaged(const Layout& layout, const std::string& name) {
  const auto bytes = ReadFile(layout.manifest, kMaxManifestBytes);
  if (!bytes.ok()) return absl::IsOutOfRange(bytes.status());
  return !Tree::ContentId(*bytes).starts_with(name);
}

// What is no version: partial folders, versions that were being removed or published, those whose
// manifest is damaged, and files that belong to none of them.
void RemoveLeftovers(const std::string& state_dir, bool all) {
  std::map<std::string, bool> names;  // whether all that is called so is old
  ForEachItem(state_dir + "/stage", [&](const fs::path& path) {
    const std::string name = path.filename().string().substr(0, kStageNameDigits);
    const bool ours = name.size() == kStageNameDigits &&
                      name.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!ours) return;
    const auto known = names.emplace(name, true).first;
    known->second = known->second && IsOld(path.string());
  });
  for (const auto& [name, old] : names) {
    if (!all && !old) continue;
    const Layout layout(state_dir, name);
    const bool whole = Exists(layout.manifest) && !IsDamaged(layout, name);
    const auto lock = LockFile(layout.lock);
    if (!lock.ok()) continue;
    if (whole) {
      (void)RemoveTree(layout.partial);
      continue;
    }
    if (const auto use = TakeOver(layout); use.ok()) (void)RemoveFiles(layout);
  }
}

}  // namespace

Pruned Prune(const std::string& state_dir, uint32_t keep, const std::string& spare,
             bool all_leftovers) {
  Pruned pruned;
  const std::vector<Version> versions = ListVersions(state_dir);
  for (size_t i = keep; i < versions.size(); ++i) {
    if (versions[i].content_id == spare) continue;
    const std::string name = versions[i].content_id.substr(0, 12);
    const absl::Status removed = Remove(state_dir, versions[i]);
    if (removed.ok()) {
      pruned.removed.push_back(versions[i].content_id);
    } else {
      pruned.kept.push_back(absl::StrCat(name, ": ", removed.message()));
    }
  }
  RemoveLeftovers(state_dir, all_leftovers);
  return pruned;
}

}  // namespace muster::stage
