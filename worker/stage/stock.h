#pragma once

#include <absl/status/status.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/tree.h"
#include "worker/stage/tree_files.h"

namespace muster::stage {

// What of a tree is on this node already: in its own version, in what an interrupted transfer left,
// and in other versions. All of it is read and checked before it counts.
struct Stock {
  std::vector<bool> pieces;          // of the content: here, and where TreeFiles::Read finds them
  uint64_t bytes = 0;                // of those
  std::vector<std::string> damaged;  // paths of an existing version, with what is wrong
};

struct StockOptions {
  bool verify = false;  // read files of an existing version; else their size and mode must do
  bool changes = true;  // false: count what could be copied from elsewhere, and write nothing
  // Folders, newest first; their manifests lie beside them.
  std::vector<std::string> other_versions{};
  const std::atomic<bool>* stop = nullptr;
  std::function<void(uint64_t)> progress{};  // bytes that are here by now; often
};

// First the version's own files: those that are good are marked so. Nothing is written.
absl::Status LookAtVersion(const Tree& tree, TreeFiles& files, const StockOptions& options,
                           Stock& stock);
// Then the rest, after Prepare: pieces in the partial folder, in damaged files, in other versions.
absl::Status CollectPieces(const Tree& tree, TreeFiles& files, const StockOptions& options,
                           Stock& stock);

}  // namespace muster::stage
