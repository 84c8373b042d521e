#include "worker/stage/versions.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/for_each_item.h"
#include "common/status.h"
#include "worker/stage/files.h"
#include "worker/stage/tree_files.h"

namespace muster::stage {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLinks = 1 << 20;

std::string LinkTarget(const std::string& path) {
  std::error_code error;
  fs::path target = fs::read_symlink(path, error);
  return error ? "" : target.string();
}

// A link of ours leads into the stage folder of some node.
bool IsOurs(const std::string& target) {
  const fs::path path(target);
  return path.parent_path().filename() == "stage" &&
         path.filename().string().size() == kStageNameDigits;
}

std::vector<std::string> LinksOf(const Layout& layout) {
  const auto text = ReadFile(layout.links, kMaxLinks);
  if (!text.ok()) return {};
  return absl::StrSplit(*text, '\n', absl::SkipEmpty());
}

}  // namespace

std::string LinkTo(const Layout& layout) {
  for (const std::string& link : LinksOf(layout)) {
    if (LinkTarget(link) == layout.version) return link;
  }
  return "";
}

std::vector<Version> ListVersions(const std::string& state_dir) {
  std::vector<Version> versions;
  ForEachItem(state_dir + "/stage", [&](const fs::path& path) {
    if (path.extension() != ".manifest") return;
    const auto bytes = ReadFile(path, kMaxManifestBytes);
    struct stat info;
    if (!bytes.ok() || lstat(path.c_str(), &info) != 0) return;
    const std::string id = Tree::ContentId(*bytes);
    const Layout layout(state_dir, id);
    if (layout.manifest != path) return;  // damaged
    versions.push_back({id, layout.version, Nanoseconds(info.st_mtim)});
  });
  std::sort(versions.begin(), versions.end(), [](const Version& a, const Version& b) {
    return std::pair(a.used_ns, a.content_id) > std::pair(b.used_ns, b.content_id);
  });
  return versions;
}

void Touch(const Layout& layout) {
  // Only the order of removal hangs on it.
  (void)utimensat(AT_FDCWD, layout.manifest.c_str(), nullptr, 0);
}

absl::StatusOr<UniqueFd> KeepVersion(const std::string& state_dir, const std::string& content_id) {
  if (!IsContentId(content_id))
    return absl::InvalidArgumentError("'" + content_id + "' is no content id");
  const Layout layout(state_dir, content_id);
  const auto gone = [&](const char* why) {
    return absl::NotFoundError("the staged tree " + content_id.substr(0, 12) + why +
                               ": stage it again");
  };
  if (!Exists(layout.manifest)) return gone(" is not here");
  UniqueFd use(open(layout.use.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!use) return PosixError("open " + layout.use);
  if (flock(use.get(), LOCK_SH | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return PosixError("lock " + layout.use);
    return gone(" is being removed");
  }
  // It may have been removed since the look.
  struct stat info;
  if (fstat(use.get(), &info) != 0 || info.st_nlink == 0 || !Exists(layout.manifest))
    return gone(" was removed just now");
  return use;
}

absl::Status CheckLink(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0) {
    if (S_ISLNK(info.st_mode) && IsOurs(LinkTarget(path))) return absl::OkStatus();
    return absl::AlreadyExistsError(path +
                                    " is there and is no link that staging made: move it away");
  }
  // The nearest folder that is there must take what is missing.
  std::string folder = fs::path(path).parent_path().string();
  while (folder.size() > 1 && !Exists(folder)) folder = fs::path(folder).parent_path().string();
  if (stat(folder.c_str(), &info) != 0) return PosixError("link " + path + ": " + folder);
  if (!S_ISDIR(info.st_mode)) return PosixError("link " + path + ": " + folder, ENOTDIR);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return PosixError("link " + path + ": write to " + folder);
  return absl::OkStatus();
}

absl::Status SwitchLink(const Layout& layout, const std::string& path) {
  MUSTER_RETURN_IF_ERROR(CheckLink(path));
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
