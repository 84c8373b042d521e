#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace muster::checkpoint {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
};

// Writes a safetensors file: tensors in the order given, each made contiguous on the CPU in turn,
// so that memory for one is enough. Flushed to the disk; the caller renames. Throws
// CheckpointError.
FileSummary WriteSafetensors(const std::filesystem::path& path,
                             const std::vector<NamedTensor>& tensors,
                             const std::map<std::string, std::string>& metadata = {});

}  // namespace muster::checkpoint
