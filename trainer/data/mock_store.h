#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/sequence_store.h"

namespace muster::data {

// `--mock-data`: Megatron's 100,000 documents of random length; document of length n holds 1, 2,
// ..., n-1 (modulo the vocabulary) and EOD.
class MockStore : public SequenceStore {
 public:
  MockStore(int64_t vocab_size, int64_t eod);

  LengthView lengths() const override;
  int64_t TokensBefore(int64_t sequence) const override {
    return before_.at(static_cast<size_t>(sequence));
  }
  uint64_t Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const override;
  std::string Where(int64_t sequence, int64_t offset) const override;
  std::string WhereLength(int64_t sequence) const override { return Where(sequence, 0); }

 private:
  int64_t vocab_size_;
  int64_t eod_;
  std::vector<int32_t> lengths_;
  std::vector<int64_t> before_;  // tokens before each document, and all of them
};

}  // namespace muster::data
