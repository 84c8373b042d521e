#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace muster::checkpoint {

// A file that can't be read, or that breaks the safetensors format. what() names the file and, for
// a broken format, the byte offset at which the offending part starts.
class SafetensorsError : public std::runtime_error {
 public:
  SafetensorsError(const std::filesystem::path& path, int64_t offset, const std::string& reason);
  // -1 when no place in the file is to blame.
  int64_t offset() const { return offset_; }

 private:
  int64_t offset_;
};

// One tensor as the header describes it; `begin` and `end` are bytes from the start of the file.
struct TensorInfo {
  at::ScalarType dtype;
  std::vector<int64_t> shape;
  uint64_t begin;
  uint64_t end;
};

// "F32" and so on. DTypeFromName throws std::invalid_argument for a name that the format or
// LibTorch does not know.
std::string DTypeName(at::ScalarType dtype);
at::ScalarType DTypeFromName(const std::string& name);

// Headers longer than this are refused, as by the format's reference implementation.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

// A safetensors file, mapped into memory: u64 header length, JSON header, tensor bytes. The file is
// treated as hostile: length, ranges, overlap, holes and dtype x shape are checked before any
// tensor is handed out. Immutable after construction, so any thread may read. The file must not be
// truncated while it is mapped.
class SafetensorsReader {
 public:
  // Throws SafetensorsError.
  explicit SafetensorsReader(const std::filesystem::path& path);
  ~SafetensorsReader();
  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

  const std::map<std::string, TensorInfo>& tensors() const;
  const std::map<std::string, std::string>& metadata() const;
  bool Contains(const std::string& name) const;

  // The tensor's own copy. Throws SafetensorsError when `name` is not in the file (names the
  // nearest one that is).
  at::Tensor Load(const std::string& name) const;
  // A tensor over the mapping, which lives on with it (copy on write: writing never reaches the
  // file). A copy where the bytes are not aligned to the element size.
  at::Tensor View(const std::string& name) const;

 private:
  struct File;
  std::shared_ptr<const File> file_;
};

}  // namespace muster::checkpoint
