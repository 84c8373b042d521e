#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::bundle {

struct Options {
  std::string programs;  // folder of muster-train and the others
  std::string output;    // a folder that is not there yet, or a file that ends in .tar.zst
  bool cpu = false;      // leave out what only runs with a GPU and is not needed to start
};

// What the bundle holds of one origin.
struct Part {
  std::string name;  // "LibTorch", "cuDNN" ...
  uint64_t bytes = 0;
  uint32_t files = 0;
};

// Makes the trainer's relocatable tree: bin/ with its programs and lib/ with every library that the
// loader takes for them here, but for the C library's own, and those that these libraries load
// later by name (cuDNN's engines, NVRTC). They find each other by $ORIGIN. The tree is made under
// another name, moved, and the moved programs are started with an empty environment before this
// succeeds. Needs patchelf and ldd (and tar and zstd for an archive). Blocking. Largest part first.
absl::StatusOr<std::vector<Part>> MakeBundle(const Options& options);

}  // namespace muster::bundle
