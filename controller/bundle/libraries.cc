#include "controller/bundle/libraries.h"

#include <algorithm>
#include <array>
#include <sstream>

namespace muster::bundle {
namespace {

constexpr std::array kSystem = {"libc.so.6",   "libm.so.6",    "libpthread.so.0",  "libdl.so.2",
                                "librt.so.1",  "libutil.so.1", "libresolv.so.2",   "libnsl.so.1",
                                "libanl.so.1", "libcuda.so.1", "libnvidia-ml.so.1"};

struct Prefix {
  const char* begin;
  const char* part;
};
constexpr Prefix kParts[] = {
    {"muster-", "programs"}, {"libtorch", "LibTorch"}, {"libc10", "LibTorch"},
    {"libcudnn", "cuDNN"},   {"libcublas", "cuBLAS"},  {"libnccl", "NCCL"},
    {"libnvrtc", "NVRTC"},   {"libcudart", "CUDA"},    {"libcupti", "CUDA"},
    {"libcufft", "CUDA"},    {"libcusparse", "CUDA"},  {"libcusolver", "CUDA"},
    {"libcurand", "CUDA"},   {"libcufile", "CUDA"},    {"libnvJitLink", "CUDA"},
    {"libnvshmem", "CUDA"},
};

}  // namespace

std::vector<Library> ParseLdd(std::string_view text) {
  std::vector<Library> libraries;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t arrow = line.find(" => ");
    if (arrow == std::string::npos) continue;  // the loader, the kernel's page
    Library library;
    const size_t begin = line.find_first_not_of(" \t");
    library.name = line.substr(begin, arrow - begin);
    const std::string rest = line.substr(arrow + 4);
    // "/lib/libx.so (0x00007f...)", or "not found".
    if (rest.starts_with('/')) library.path = rest.substr(0, rest.rfind(" ("));
    libraries.push_back(library);
  }
  return libraries;
}

bool IsOfTheSystem(std::string_view name) {
  return name.starts_with("ld-linux") ||
         std::find(kSystem.begin(), kSystem.end(), name) != kSystem.end();
}

std::vector<std::string> LoadedLater(std::string_view name) {
  if (name.starts_with("libcudnn.so")) return {"libcudnn_"};
  // cuDNN's runtime engines compile kernels with it.
  if (name.starts_with("libcudart.so")) return {"libnvrtc.so", "libnvrtc-builtins.so"};
  return {};
}

std::string PartOf(std::string_view name) {
  for (const Prefix& prefix : kParts) {
    if (name.starts_with(prefix.begin)) return prefix.part;
  }
  return "other";
}

}  // namespace muster::bundle
