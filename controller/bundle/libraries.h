#pragma once

#include <string>
#include <string_view>
#include <vector>

// What the loader says of a program's libraries. Pure.

namespace muster::bundle {

struct Library {
  std::string name;  // as programs ask for it: "libcudnn.so.9"
  std::string path;  // where the loader found it; empty: nowhere
};

// The lines of ldd, but for the kernel's and the loader itself.
std::vector<Library> ParseLdd(std::string_view text);

// A part of the C library: it comes with the host, since it fits the host's loader alone.
bool IsOfTheSystem(std::string_view name);

// Libraries that the one called `name` loads later by name from its own folder: the beginnings of
// their file names. They are used with a GPU only.
std::vector<std::string> LoadedLater(std::string_view name);

// What a file belongs to: "LibTorch", "CUDA", "cuBLAS", "cuDNN", "NCCL", "programs", "other".
std::string PartOf(std::string_view name);

}  // namespace muster::bundle
