#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "common/tree.h"

namespace muster::stage {

// A tree as it lies on the controller's machine.
struct ScannedTree {
  std::string manifest;  // bytes; their SHA-256 is the content id
  Tree tree;
  std::vector<std::string> paths;  // of each entry, absolute
  uint32_t ignored = 0;            // files and folders that were left out
};

// Reads it all, with a few threads. `paths` are absolute: one folder, whose content is the tree, or
// several files and folders, which keep their names. A .musterignore in a folder given says what is
// left out of it. InvalidArgument names what can't be staged: a socket, a device, a pipe, a file
// that can't be read. Blocking; `stop` ends it with Cancelled.
absl::StatusOr<ScannedTree> ScanTree(const std::vector<std::string>& paths,
                                     const std::atomic<bool>& stop);

}  // namespace muster::stage
