#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace muster::data {

// A whole file, mapped read-only. Movable. The mapping lives as long as the object. Reading is safe
// from any thread; the file must not shrink meanwhile.
class MappedFile {
 public:
  MappedFile() = default;
  // Throws DataError with the path and the reason. An empty file maps to size 0.
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const uint8_t* data() const { return data_; }
  int64_t size() const { return size_; }
  // Asks the system to read these bytes from disk. Never fails, never waits.
  void Prefetch(int64_t offset, int64_t count) const;

 private:
  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace muster::data
