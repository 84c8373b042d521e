#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// numpy's .npy files of little-endian integers: what Megatron keeps its indices in.

namespace muster::data {

// The header as numpy.save writes it. `type`: "<i4", "<u4", "<i8", "<i2".
std::string NpyHeader(std::string_view type, const std::vector<int64_t>& shape);

// The elements of a mapped .npy file.
struct NpyArray {
  std::shared_ptr<const void> owner;  // keeps them mapped
  const uint8_t* data = nullptr;
  int64_t offset = 0;  // of the first element in the file
};

// Maps the array if its type and shape are these and the file ends with it; any version of the
// header. Throws DataError with path, offset and what was found.
NpyArray MapNpy(const std::string& path, std::string_view type, const std::vector<int64_t>& shape);

// Writes header and elements under a temporary name, makes them durable and renames. Throws
// DataError with the path and the reason.
void WriteNpy(const std::string& path, std::string_view type, const std::vector<int64_t>& shape,
              std::span<const uint8_t> bytes);

// The same for any content.
void WriteWhole(const std::string& path, std::string_view first, std::span<const uint8_t> then);

}  // namespace muster::data
