#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

// Megatron's ByteLevelTokenizer: a text is its bytes in UTF-8. EOD is 0 and padding 1, which are
// the bytes of control characters too. The vocabulary has room beyond the 256 bytes.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr int64_t kVocabSize = 512;

  // Throws TokenizerError below 256.
  explicit ByteTokenizer(int64_t vocab_size);

  std::unique_ptr<Encoder> NewEncoder(const EncoderOptions& options) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> eod() const override { return 0; }
  std::optional<int32_t> pad() const override { return 1; }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  int64_t vocab_size_;
};

}  // namespace muster::tokenizer
