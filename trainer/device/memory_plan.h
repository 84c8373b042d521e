#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace muster::device {

// Lays buffers out in one piece of memory before it exists. Each buffer lives from one phase of the
// program to another (inclusive); buffers whose lives do not meet may share memory. Pure values.
class MemoryPlan {
 public:
  static constexpr int kForever = 1 << 30;
  static constexpr int64_t kAlignment = 256;

  struct Buffer {
    std::string name;
    int64_t bytes;
    int first, last;
    int64_t offset;  // of LayOut
  };

  // The buffer's number. A buffer that is always there: first 0, last kForever.
  int Add(std::string name, int64_t bytes, int first = 0, int last = kForever);

  // Gives every buffer its offset, large ones first, each as low as it fits.
  void LayOut();

  int64_t Offset(int buffer) const { return buffers_[static_cast<size_t>(buffer)].offset; }
  int64_t TotalBytes() const { return total_; }  // after LayOut
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  std::vector<Buffer> buffers_;
  int64_t total_ = 0;
};

// A plan whose buffers are pointers of the program: each gets its place once the memory is there.
class Planner {
 public:
  // The pointer must outlive the planner's Bind.
  template <typename T>
  void Want(T** pointer, std::string name, int64_t count, int first = 0,
            int last = MemoryPlan::kForever) {
    const int buffer =
        plan_.Add(std::move(name), count * static_cast<int64_t>(sizeof(T)), first, last);
    bindings_.push_back({buffer, reinterpret_cast<std::byte**>(pointer)});
  }

  // The number of bytes needed.
  int64_t LayOut() {
    plan_.LayOut();
    return plan_.TotalBytes();
  }
  void Bind(std::byte* memory) const {
    for (const auto& [buffer, pointer] : bindings_) *pointer = memory + plan_.Offset(buffer);
  }
  const MemoryPlan& plan() const { return plan_; }

 private:
  MemoryPlan plan_;
  std::vector<std::pair<int, std::byte**>> bindings_;
};

}  // namespace muster::device
