#include "trainer/device/memory_plan.h"

#include <algorithm>
#include <utility>

namespace muster::device {
namespace {

int64_t Align(int64_t bytes) {
  constexpr int64_t a = MemoryPlan::kAlignment;
  return (bytes + a - 1) / a * a;
}

bool Meet(const MemoryPlan::Buffer& a, const MemoryPlan::Buffer& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

int MemoryPlan::Add(std::string name, int64_t bytes, int first, int last) {
  buffers_.push_back({std::move(name), Align(bytes), first, last, 0});
  return static_cast<int>(buffers_.size()) - 1;
}

void MemoryPlan::LayOut() {
  total_ = 0;
  std::vector<Buffer*> shared;
  for (Buffer& buffer : buffers_) {
    if (buffer.last == kForever && buffer.first == 0) {
      buffer.offset = std::exchange(total_, total_ + buffer.bytes);
    } else {
      shared.push_back(&buffer);
    }
  }
  std::stable_sort(shared.begin(), shared.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  const int64_t base = total_;
  std::vector<Buffer*> placed;  // by offset
  for (Buffer* buffer : shared) {
    int64_t offset = base;
    for (const Buffer* other : placed) {
      if (!Meet(*buffer, *other)) continue;
      if (offset + buffer->bytes <= other->offset) break;
      offset = std::max(offset, other->offset + other->bytes);
    }
    buffer->offset = offset;
    total_ = std::max(total_, offset + buffer->bytes);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; }),
        buffer);
  }
}

}  // namespace muster::device
