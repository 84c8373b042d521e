#pragma once

#include <cstdint>
#include <string>

#include "trainer/data/indexed_format.h"

namespace muster::data {

// Lengths of a store's sequences; int32 at any alignment, owned by the store.
class LengthView {
 public:
  LengthView() = default;
  LengthView(const uint8_t* first, int64_t size) : first_(first), size_(size) {}

  int64_t size() const { return size_; }
  int32_t operator[](int64_t i) const {
    return LoadUnaligned<int32_t>(first_ + i * static_cast<int64_t>(sizeof(int32_t)));
  }

 private:
  const uint8_t* first_ = nullptr;
  int64_t size_ = 0;
};

// Token sequences by number. A document is one or more sequences; Megatron's samples are cut from
// sequences. Constructed, then immutable: any thread.
class SequenceStore {
 public:
  virtual ~SequenceStore() = default;

  virtual LengthView lengths() const = 0;

  // Tokens of the sequences before `sequence`, 0 <= sequence <= lengths().size(), in constant time.
  // Throws DataError when the store's own books say something impossible.
  virtual int64_t TokensBefore(int64_t sequence) const = 0;

  // Tokens offset .. offset+count of sequence `sequence`. Returns the largest of them, taken as
  // unsigned numbers; 0 for no tokens. Throws DataError when they do not exist.
  virtual uint64_t Read(int64_t sequence, int64_t offset, int64_t count, int64_t* out) const = 0;

  // Asks the processor for what Read of these tokens needs first, where that is in memory: for
  // tokens that are read at once. Never fails, never waits.
  virtual void Touch(int64_t /*sequence*/, int64_t /*offset*/, int64_t /*count*/) const {}

  // Asks the system to fetch these tokens from disk. Never fails, never waits.
  virtual void Prefetch(int64_t /*sequence*/, int64_t /*offset*/, int64_t /*count*/) const {}

  // Where that token is, for a message: file, byte offset, sequence and token number.
  virtual std::string Where(int64_t sequence, int64_t offset) const = 0;

  // Where lengths()[sequence] is, likewise.
  virtual std::string WhereLength(int64_t sequence) const = 0;
};

}  // namespace muster::data
