#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

// Megatron's NullTokenizer: a text is ids, written with one space between them. What counts as a
// number is what Python's int() takes. The last id of the vocabulary is the end of a document.
class NullTokenizer : public Tokenizer {
 public:
  explicit NullTokenizer(int64_t vocab_size);

  std::unique_ptr<Encoder> NewEncoder(const EncoderOptions& options) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> eod() const override { return static_cast<int32_t>(vocab_size_ - 1); }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  int64_t vocab_size_;
};

}  // namespace muster::tokenizer
