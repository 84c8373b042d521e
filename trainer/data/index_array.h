#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <fmt/format.h>

namespace muster::data {

// An array of integers that is narrow where they fit, as Megatron stores it: in memory while it is
// built, or in a mapped file. Copies share the bytes. Reading: any thread.
template <typename Narrow, typename Wide>
class IndexArray {
 public:
  IndexArray() = default;

  // Memory for `size` elements; the values are not set.
  static IndexArray Allocate(int64_t size, bool wide) {
    const auto bytes = static_cast<size_t>(size) * (wide ? sizeof(Wide) : sizeof(Narrow));
    auto memory = std::make_shared_for_overwrite<uint8_t[]>(bytes);
    uint8_t* const data = memory.get();
    return IndexArray(std::move(memory), data, size, wide);
  }

  // Elements of a file, which `owner` keeps mapped: `path` from byte `offset` on. Read only.
  static IndexArray Mapped(std::shared_ptr<const void> owner, const uint8_t* data, int64_t size,
                           bool wide, std::string path, int64_t offset) {
    IndexArray array(std::move(owner), const_cast<uint8_t*>(data), size, wide);
    array.path_ = std::move(path);
    array.offset_ = offset;
    return array;
  }

  int64_t size() const { return size_; }
  bool is_wide() const { return is_wide_; }
  int64_t element_bytes() const {
    return static_cast<int64_t>(is_wide_ ? sizeof(Wide) : sizeof(Narrow));
  }
  int64_t operator[](int64_t i) const {
    return is_wide_ ? static_cast<int64_t>(wide()[static_cast<size_t>(i)])
                    : static_cast<int64_t>(narrow()[static_cast<size_t>(i)]);
  }
  // The elements, of the type they have; arrays from Allocate may be written.
  std::span<Narrow> narrow() const {
    return {reinterpret_cast<Narrow*>(data_), static_cast<size_t>(size_)};
  }
  std::span<Wide> wide() const {
    return {reinterpret_cast<Wide*>(data_), static_cast<size_t>(size_)};
  }
  std::span<const uint8_t> bytes() const {
    return {data_, static_cast<size_t>(size_ * element_bytes())};
  }
  // Where element i is, for a message.
  std::string Where(int64_t i) const {
    return fmt::format("{}, offset {}", path_.empty() ? "index in memory" : path_,
                       offset_ + i * element_bytes());
  }

 private:
  IndexArray(std::shared_ptr<const void> owner, uint8_t* data, int64_t size, bool wide)
      : owner_(std::move(owner)), data_(data), size_(size), is_wide_(wide) {}

  std::shared_ptr<const void> owner_;
  uint8_t* data_ = nullptr;
  int64_t size_ = 0;
  bool is_wide_ = false;
  std::string path_;  // empty: in memory
  int64_t offset_ = 0;
};

}  // namespace muster::data
