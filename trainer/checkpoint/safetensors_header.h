#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// The JSON header of a safetensors file, without LibTorch: what a file claims, before anything is
// believed.

namespace muster::checkpoint {

struct HeaderEntry {
  std::string dtype;
  std::vector<int64_t> shape;  // each 0 <= n <= 2^53
  uint64_t begin = 0;          // bytes from the end of the header
  uint64_t end = 0;
};

struct Header {
  std::map<std::string, HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Checks JSON, field names and types, duplicate names and begin <= end; not sizes. Throws
// std::invalid_argument with the reason and, for a tensor, its name.
Header ParseHeader(std::string_view json);

}  // namespace muster::checkpoint
