#include "trainer/data/mock_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/data/data_error.h"
#include "trainer/data/numpy_random.h"

namespace muster::data {
namespace {

constexpr int64_t kDocuments = 100'000;
constexpr int32_t kLengthLimit = 4096;
constexpr uint32_t kSeed = 0;

}  // namespace

MockStore::MockStore(int64_t vocab_size, int64_t eod)
    : vocab_size_(vocab_size),
      eod_(eod),
      lengths_(NumpyIntegers(kSeed, 1, kLengthLimit, kDocuments)) {
  if (vocab_size < 1 || eod < 0) {
    throw DataError("--mock-data needs a vocabulary size and an end-of-document token");
  }
  before_.reserve(lengths_.size() + 1);
  before_.push_back(0);
  for (const int32_t length : lengths_) before_.push_back(before_.back() + length);
}

LengthView MockStore::lengths() const {
  return {reinterpret_cast<const uint8_t*>(lengths_.data()), static_cast<int64_t>(lengths_.size())};
}

uint64_t MockStore::Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const {
  const int64_t length = lengths_.at(static_cast<size_t>(sequence));
  uint64_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = offset + i;
    out[i] = position == length - 1 ? eod_ : (position + 1) % vocab_size_;
    largest = std::max(largest, static_cast<uint64_t>(out[i]));
  }
  return largest;
}

std::string MockStore::Where(int64_t sequence, int64_t offset) const {
  return fmt::format("mock document {}, token {}", sequence, offset);
}

}  // namespace muster::data
