#include "worker/stage/tree_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/read_at.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/stage/files.h"

namespace muster::stage {
namespace {

constexpr mode_t kRootMode = 0755;

bool IsKind(const v1::TreeEntry& entry, mode_t mode) {
  switch (entry.kind()) {
    case v1::TREE_KIND_FILE:
      return S_ISREG(mode);
    case v1::TREE_KIND_FOLDER:
      return S_ISDIR(mode);
    default:
      return S_ISLNK(mode);
  }
}

// The target of the link at `path`; "" when there is none.
std::string TargetOf(const std::string& path) {
  std::string target(kMaxTreePath + 1, '\0');
  const ssize_t n = readlink(path.c_str(), target.data(), target.size());
  target.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return target;
}

}  // namespace

bool Matches(const Tree& tree, uint32_t piece, std::string_view bytes) {
  return bytes.size() == tree.Locate(piece).size && Sha256(bytes) == tree.Sum(piece);
}

TreeFiles::TreeFiles(const Tree& tree, Layout layout)
    : tree_(tree),
      layout_(std::move(layout)),
      root_(layout_.partial),
      good_(tree.num_entries(), false) {
  struct stat info;
  has_version_ = lstat(layout_.version.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string TreeFiles::VersionPath(size_t entry) const {
  return layout_.version + "/" + tree_.entry(entry).path();
}

std::string TreeFiles::PartialPath(size_t entry) const {
  return layout_.partial + "/" + tree_.entry(entry).path();
}

std::string TreeFiles::LookAt(size_t index) const {
  const v1::TreeEntry& entry = tree_.entry(index);
  const std::string path = VersionPath(index);
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return "missing";
  if (!IsKind(entry, info.st_mode)) return "of another kind";
  if (entry.kind() == v1::TREE_KIND_SYMLINK) {
    return TargetOf(path) == entry.target() ? "" : "another target";
  }
  if (entry.kind() == v1::TREE_KIND_FILE && static_cast<uint64_t>(info.st_size) != entry.size()) {
    return "another size";
  }
  return (info.st_mode & 07777) == entry.mode() ? "" : "another mode";
}

void TreeFiles::MarkGood(size_t entry) {
  absl::MutexLock lock(&mutex_);
  good_[entry] = true;
}

bool TreeFiles::IsGood(size_t entry) const {
  absl::MutexLock lock(&mutex_);
  return good_[entry];
}

absl::Status TreeFiles::Prepare() {
  MUSTER_RETURN_IF_ERROR(MakeFolders(layout_.partial));
  for (size_t i = 0; i < tree_.num_entries(); ++i) {
    const v1::TreeEntry& entry = tree_.entry(i);
    const std::string path = PartialPath(i);
    if (entry.kind() == v1::TREE_KIND_FOLDER && mkdir(path.c_str(), 0700) != 0) {
      // Of an interrupted transfer, maybe with its final mode.
      if (errno != EEXIST || chmod(path.c_str(), 0700) != 0)
        return PosixError("make folder " + path);
    }
    if (entry.kind() != v1::TREE_KIND_FILE || entry.size() != 0) continue;
    const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd) return PosixError("make " + path);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TreeFiles::Read(uint32_t piece) const {
  const PiecePlace place = tree_.Locate(piece);
  std::string path;
  UniqueFd fd;
  {
    absl::MutexLock lock(&mutex_);
    path = (good_[place.entry] ? layout_.version : root_) + "/" + tree_.entry(place.entry).path();
    fd.reset(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  }
  if (!fd) return PosixError("open " + path);
  MUSTER_ASSIGN_OR_RETURN(std::string bytes, ReadAt(fd.get(), place.offset, place.size, path));
  if (!Matches(tree_, piece, bytes)) return absl::DataLossError(path + " has other content");
  return bytes;
}

absl::Status TreeFiles::Write(uint32_t piece, std::string_view bytes) {
  const PiecePlace place = tree_.Locate(piece);
  const std::string path = PartialPath(place.entry);
  if (!open_ || open_entry_ != place.entry) {
    open_.reset(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!open_) return PosixError("open " + path);
    open_entry_ = place.entry;
    // What an interrupted transfer left may be longer.
    const auto size = static_cast<off_t>(tree_.entry(place.entry).size());
    struct stat info;
    if (fstat(open_.get(), &info) == 0 && info.st_size > size && ftruncate(open_.get(), size) != 0)
      return PosixError("shorten " + path);
  }
  return WriteAt(open_.get(), place.offset, bytes, path);
}

absl::Status TreeFiles::SetLink(size_t entry, const std::string& path) const {
  const std::string& target = tree_.entry(entry).target();
  if (TargetOf(path) == target) return absl::OkStatus();
  // Beside the tree: in it, the name may be a file's.
  const std::string temporary = layout_.partial + ".link";
  unlink(temporary.c_str());
  if (symlink(target.c_str(), temporary.c_str()) != 0 ||
      rename(temporary.c_str(), path.c_str()) != 0) {
    return PosixError("make link " + path);
  }
  return absl::OkStatus();
}

// Folders last and from the deepest on: one without write permission takes nothing more.
absl::Status TreeFiles::SetModes(const std::string& root) const {
  for (size_t i = tree_.num_entries(); i-- > 0;) {
    const v1::TreeEntry& entry = tree_.entry(i);
    if (entry.kind() == v1::TREE_KIND_SYMLINK) continue;
    const std::string path = root + "/" + entry.path();
    if (chmod(path.c_str(), entry.mode()) != 0) return PosixError("set the mode of " + path);
  }
  if (chmod(root.c_str(), kRootMode) != 0) return PosixError("set the mode of " + root);
  return absl::OkStatus();
}

absl::Status TreeFiles::Publish() {
  open_.reset();
  MUSTER_RETURN_IF_ERROR(has_version_ ? Mend() : PublishNew());
  const UniqueFd root(open(layout_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root || fsync(root.get()) != 0) return PosixError("fsync " + layout_.root);
  return absl::OkStatus();
}

absl::Status TreeFiles::PublishNew() {
  for (size_t i = 0; i < tree_.num_entries(); ++i) {
    if (tree_.entry(i).kind() == v1::TREE_KIND_SYMLINK)
      MUSTER_RETURN_IF_ERROR(SetLink(i, PartialPath(i)));
  }
  MUSTER_RETURN_IF_ERROR(SetModes(layout_.partial));
  // One call for all of them; nothing is visible before they are on the disk.
  const UniqueFd folder(open(layout_.partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || syncfs(folder.get()) != 0) return PosixError("sync " + layout_.partial);
  absl::MutexLock lock(&mutex_);
  if (rename(layout_.partial.c_str(), layout_.version.c_str()) != 0)
    return PosixError("rename to " + layout_.version);
  root_ = layout_.version;
  return absl::OkStatus();
}

absl::Status TreeFiles::Mend() {
  // Folders first, open for what comes into them.
  for (size_t i = 0; i < tree_.num_entries(); ++i) {
    const v1::TreeEntry& entry = tree_.entry(i);
    const std::string path = VersionPath(i);
    if (entry.kind() != v1::TREE_KIND_FOLDER) continue;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return PosixError("make folder " + path);
    struct stat info;
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
      return absl::FailedPreconditionError(path + " was replaced by something else: remove that");
    }
    if (chmod(path.c_str(), entry.mode() | 0700) != 0) return PosixError("open folder " + path);
  }
  for (size_t i = 0; i < tree_.num_entries(); ++i) {
    const v1::TreeEntry& entry = tree_.entry(i);
    const std::string path = VersionPath(i);
    if (entry.kind() == v1::TREE_KIND_SYMLINK) MUSTER_RETURN_IF_ERROR(SetLink(i, path));
    if (entry.kind() != v1::TREE_KIND_FILE || IsGood(i)) continue;
    const UniqueFd fd(open(PartialPath(i).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!fd || fchmod(fd.get(), entry.mode()) != 0 || fsync(fd.get()) != 0)
      return PosixError("sync " + PartialPath(i));
    absl::MutexLock lock(&mutex_);
    // Whoever has the damaged file open keeps it.
    if (rename(PartialPath(i).c_str(), path.c_str()) != 0) return PosixError("replace " + path);
    good_[i] = true;
  }
  MUSTER_RETURN_IF_ERROR(SetModes(layout_.version));
  return RemoveTree(layout_.partial);
}

}  // namespace muster::stage
