#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trainer/data/indexed_format.h"
#include "trainer/tools/spill_file.h"

namespace muster::tools {

// Documents of one key and part, as the writer takes them: tokens, sequences, documents. The tokens
// of very long texts are in a file. One thread at a time.
class EncodedColumn {
 public:
  // Sizes to go back to.
  struct Mark {
    int64_t tokens;
    size_t lengths;
    size_t documents;
  };

  int64_t num_tokens() const { return spilled_tokens_ + static_cast<int64_t>(ids.size()); }
  Mark mark() const { return {num_tokens(), lengths.size(), sequences_per_document.size()}; }
  // Takes back what was added since. Throws data::DataError.
  void Restore(const Mark& mark, data::TokenType type);

  // Moves all ids to a file in `folder`. Throws data::DataError.
  void Spill(data::TokenType type, const std::string& folder);
  // Nothing more is added: brings the ids to the width of `type`.
  void Close(data::TokenType type);

  // The tokens before those of token_bytes(), or null.
  const SpillFile* spilled() const { return spilled_.get(); }
  // After Close.
  std::span<const uint8_t> token_bytes() const;

  std::vector<int32_t> ids;  // until Close; fit the token type
  std::vector<int32_t> lengths;
  std::vector<int32_t> sequences_per_document;

 private:
  std::vector<uint16_t> narrow_ids_;  // instead of ids, where that is the token type
  std::unique_ptr<SpillFile> spilled_;
  int64_t spilled_tokens_ = 0;
};

}  // namespace muster::tools
