#include "worker/stage/versions.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "common/status.h"
#include "worker/stage/files.h"
#include "worker/stage/tree_files.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLinks = 1 << 20;
constexpr std::chrono::hours kPartialLife(24);

int64_t Nanoseconds(const timespec& time) {
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

std::string LinkTarget(const std::string& path) {
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.string();
}

// A link of ours leads into the stage folder of some node.
bool IsOurs(const std::string& target) {
  const fs::path path(target);
  return path.parent_path().filename() == "stage" && path.filename().string().size() == 24;
}

std::vector<std::string> LinksOf(const Layout& layout) {
  const auto text = ReadFile(layout.links, kMaxLinks);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

// What is written by running a program rather than by a person.
bool IsByproduct(const fs::path& path) {
  return path.filename() == "__pycache__" || path.extension() == ".pyc";
}

// A file in the version's folder that is not of its tree; "" when there is none.
std::string ForeignFile(const Version& version) {
  const auto bytes = ReadFile(version.folder + ".manifest", kMaxManifestBytes);
  const auto tree = bytes.ok() ? Tree::Parse(*bytes) : absl::StatusOr<Tree>(bytes.status());
  if (!tree.ok()) return "";
  std::set<std::string> own;
  for (const v1::TreeEntry& entry : tree->manifest().entries()) own.insert(entry.path());
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(version.folder, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    if (IsByproduct(it->path())) {
      it.disable_recursion_pending();
      continue;
    }
    std::string path = it->path().lexically_relative(version.folder).string();
    if (!own.contains(path)) return path;
  }
  return "";
}

// Why it stays; "" when it may go.
std::string WhyKept(const std::string& state_dir, const Version& version,
                    const std::set<std::string>& in_use) {
  if (in_use.contains(version.content_id)) return "a job uses it";
  for (const std::string& link : LinksOf(Layout(state_dir, version.content_id))) {
    if (LinkTarget(link) == version.folder) return link + " leads to it";
  }
  const std::string foreign = ForeignFile(version);
  if (!foreign.empty()) return foreign + " is not of the tree; move it away first";
  return "";
}

// FailedPrecondition: why it stays.
absl::Status Remove(const std::string& state_dir, const Version& version,
                    const std::set<std::string>& in_use) {
  const Layout layout(state_dir, version.content_id);
  MUSTER_ASSIGN_OR_RETURN(const UniqueFd lock, LockFile(layout.lock));
  // Under the lock: a transfer of it may have ended just now, and made a link to it.
  struct stat info;
  if (lstat(layout.manifest.c_str(), &info) == 0 && Nanoseconds(info.st_mtim) != version.used_ns)
    return absl::FailedPreconditionError("it was staged again just now");
  const std::string why = WhyKept(state_dir, version, in_use);
  if (!why.empty()) return absl::FailedPreconditionError(why);
  // Without its manifest it is no version any more, whatever happens next.
  if (unlink(layout.manifest.c_str()) != 0 && errno != ENOENT)
    return PosixError("remove " + layout.manifest);
  unlink(layout.links.c_str());
  MUSTER_RETURN_IF_ERROR(RemoveTree(layout.version));
  MUSTER_RETURN_IF_ERROR(RemoveTree(layout.partial));
  unlink(layout.lock.c_str());
  return absl::OkStatus();
}

// Folders without a manifest: partial ones, and versions that were being removed or published.
void RemoveLeftovers(const std::string& root, bool all) {
  std::error_code error;
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(root, error)) {
    const std::string name = item.path().filename().string();
    const bool partial = item.path().extension() == ".partial";
    if (!partial && (name.size() != 24 || fs::exists(absl::StrCat(root, "/", name, ".manifest"))))
      continue;
    struct stat info;
    if (lstat(item.path().c_str(), &info) != 0) continue;
    const auto age = std::chrono::system_clock::now().time_since_epoch() -
                     std::chrono::nanoseconds(Nanoseconds(info.st_mtim));
    if (all || age > kPartialLife) names.push_back(name.substr(0, 24));
  }
  for (const std::string& name : names) {
    const std::string base = absl::StrCat(root, "/", name);
    const auto lock = LockFile(base + ".lock");
    if (!lock.ok()) continue;
    (void)RemoveTree(base + ".partial");
    if (!fs::exists(base + ".manifest", error)) {
      (void)RemoveTree(base);
      unlink((base + ".lock").c_str());
    }
  }
}

}  // namespace

std::vector<Version> ListVersions(const std::string& state_dir) {
  std::vector<Version> versions;
  std::error_code error;
  for (const auto& item : fs::directory_iterator(state_dir + "/stage", error)) {
    if (item.path().extension() != ".manifest") continue;
    const auto bytes = ReadFile(item.path(), kMaxManifestBytes);
    struct stat info;
    if (!bytes.ok() || lstat(item.path().c_str(), &info) != 0) continue;
    const std::string id = Tree::ContentId(*bytes);
    const Layout layout(state_dir, id);
    if (layout.manifest != item.path()) continue;  // damaged
    versions.push_back({id, layout.version, Nanoseconds(info.st_mtim)});
  }
  std::sort(versions.begin(), versions.end(), [](const Version& a, const Version& b) {
    return std::pair(a.used_ns, a.content_id) > std::pair(b.used_ns, b.content_id);
  });
  return versions;
}

void Touch(const Layout& layout) {
  // Only the order of removal hangs on it.
  (void)utimensat(AT_FDCWD, layout.manifest.c_str(), nullptr, 0);
}

Pruned Prune(const std::string& state_dir, uint32_t keep, const std::set<std::string>& in_use,
             bool all_partial) {
  Pruned pruned;
  const std::vector<Version> versions = ListVersions(state_dir);
  for (size_t i = keep; i < versions.size(); ++i) {
    const std::string name = versions[i].content_id.substr(0, 12);
    const absl::Status removed = Remove(state_dir, versions[i], in_use);
    if (removed.ok()) {
      pruned.removed.push_back(versions[i].content_id);
    } else {
      pruned.kept.push_back(absl::StrCat(name, ": ", removed.message()));
    }
  }
  RemoveLeftovers(state_dir + "/stage", all_partial);
  return pruned;
}

absl::Status SwitchLink(const Layout& layout, const std::string& path) {
  struct stat info;
  const bool exists = lstat(path.c_str(), &info) == 0;
  if (exists && !(S_ISLNK(info.st_mode) && IsOurs(LinkTarget(path)))) {
    return absl::AlreadyExistsError(path +
                                    " is there and is no link that staging made: move it away");
  }
  MUSTER_RETURN_IF_ERROR(MakeFolders(fs::path(path).parent_path()));
  // Known before it is there, so that the version is never removed under it.
  std::vector<std::string> links = LinksOf(layout);
  if (std::find(links.begin(), links.end(), path) == links.end()) {
    links.push_back(path);
    std::string text;
    for (const std::string& link : links) absl::StrAppend(&text, link, "\n");
    MUSTER_RETURN_IF_ERROR(WriteFileAtomically(layout.links, text));
  }
  if (LinkTarget(path) == layout.version) return absl::OkStatus();
  const std::string temporary = absl::StrCat(path, ".muster-new.", getpid());
  unlink(temporary.c_str());
  if (symlink(layout.version.c_str(), temporary.c_str()) != 0)
    return PosixError("make link " + temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    absl::Status failed = PosixError("switch link " + path);
    unlink(temporary.c_str());
    return failed;
  }
  return absl::OkStatus();
}

absl::Status QuickCheck(const std::string& state_dir, const std::string& content_id) {
  if (!IsContentId(content_id))
    return absl::InvalidArgumentError("'" + content_id + "' is no content id");
  const Layout layout(state_dir, content_id);
  const auto bytes = ReadFile(layout.manifest, kMaxManifestBytes);
  if (absl::IsNotFound(bytes.status()))
    return absl::NotFoundError("the staged tree " + content_id.substr(0, 12) + " is not here");
  MUSTER_RETURN_IF_ERROR(bytes.status());
  if (Tree::ContentId(*bytes) != content_id)
    return absl::DataLossError(layout.manifest + " has other content");
  MUSTER_ASSIGN_OR_RETURN(const Tree tree, Tree::Parse(*bytes));
  const TreeFiles files(tree, layout);
  for (size_t i = 0; i < tree.num_entries(); ++i) {
    const std::string fault = files.LookAt(i);
    if (!fault.empty()) return absl::DataLossError(files.VersionPath(i) + ": " + fault);
  }
  return absl::OkStatus();
}

}  // namespace muster::stage
