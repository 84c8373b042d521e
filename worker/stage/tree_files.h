#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/tree.h"
#include "common/unique_fd.h"
#include "worker/stage/layout.h"

namespace muster::stage {

// The files of one tree on disk. Each lies in the version's folder when it is good there, else it
// is made in the partial folder, which becomes the version (or whose files are moved into it) when
// all are whole. Read from any thread; the rest is for one thread.
class TreeFiles {
 public:
  // The tree outlives it. All files are in the partial folder until MarkGood.
  TreeFiles(const Tree& tree, Layout layout);

  bool has_version() const { return has_version_; }
  // Why the entry in the version's folder is not as the manifest says, by its kind, size, mode and
  // target; empty: it is.
  std::string LookAt(size_t entry) const;
  // The entry is good in the version's folder.
  void MarkGood(size_t entry);
  bool IsGood(size_t entry) const;

  std::string VersionPath(size_t entry) const;
  std::string PartialPath(size_t entry) const;

  // Makes the partial folder and the folders of the files that will be written there.
  absl::Status Prepare();
  // DataLoss: what is there is not this piece.
  absl::StatusOr<std::string> Read(uint32_t piece) const;
  // Bytes of the caller's that have been checked.
  absl::Status Write(uint32_t piece, std::string_view bytes);
  // All files are whole: gives modes and links, makes it durable and visible. Also mends what is
  // wrong in an existing version.
  absl::Status Publish();

 private:
  absl::Status PublishNew();
  absl::Status Mend();
  absl::Status SetLink(size_t entry, const std::string& path) const;
  absl::Status SetModes(const std::string& root) const;

  const Tree& tree_;
  const Layout layout_;
  bool has_version_ = false;
  size_t open_entry_ = 0;  // of open_; the writer's
  UniqueFd open_;
  mutable absl::Mutex mutex_;                 // a file is not moved while it is opened
  std::string root_ ABSL_GUARDED_BY(mutex_);  // of what is not good
  std::vector<bool> good_ ABSL_GUARDED_BY(mutex_);
};

// Whether the bytes have the sum that the tree gives the piece.
bool Matches(const Tree& tree, uint32_t piece, std::string_view bytes);

}  // namespace muster::stage
