#include "trainer/tokenizer/work_memory.h"

#include <fmt/format.h>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

double Mib(size_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

}  // namespace

WorkMemory::Hold WorkMemory::Take(size_t size, size_t factor, const char* what) {
  if (size <= kFree / factor) return Hold(nullptr);
  if (size > bytes_ / factor) {
    throw TokenizerError(
        fmt::format("{} of {:.2f} MiB, which takes about {} bytes of memory for each of its bytes; "
                    "the limit is {:.2f} MiB; {}",
                    what, Mib(size), factor, Mib(bytes_ / factor), hint_));
  }
  const size_t wanted = size * factor;
  std::unique_lock lock(mutex_);
  given_back_.wait(lock, [&] { return taken_ + wanted <= bytes_; });
  taken_ += wanted;
  return Hold(this, Giver(wanted));
}

void WorkMemory::Giver::operator()(WorkMemory* memory) const {
  {
    const std::lock_guard lock(memory->mutex_);
    memory->taken_ -= taken_;
  }
  memory->given_back_.notify_all();
}

}  // namespace muster::tokenizer
