#include "trainer/tools/encoded_column.h"

namespace muster::tools {
namespace {

template <typename Token>
std::span<const uint8_t> AsBytes(const std::vector<Token>& tokens) {
  return {reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size() * sizeof(Token)};
}

}  // namespace

void EncodedColumn::Restore(const Mark& mark, data::TokenType type) {
  lengths.resize(mark.lengths);
  sequences_per_document.resize(mark.documents);
  if (mark.tokens >= spilled_tokens_) {
    ids.resize(static_cast<size_t>(mark.tokens - spilled_tokens_));
    return;
  }
  ids.clear();
  spilled_->Truncate(mark.tokens * data::TokenBytes(type));
  spilled_tokens_ = mark.tokens;
}

void EncodedColumn::Spill(data::TokenType type, const std::string& folder) {
  if (!spilled_) spilled_ = std::make_unique<SpillFile>(folder);
  if (type == data::TokenType::kUint16) {
    const std::vector<uint16_t> narrow(ids.begin(), ids.end());
    spilled_->Write(AsBytes(narrow));
  } else {
    spilled_->Write(AsBytes(ids));
  }
  spilled_tokens_ += static_cast<int64_t>(ids.size());
  ids.clear();
}

void EncodedColumn::Close(data::TokenType type) {
  if (type != data::TokenType::kUint16) return;
  narrow_ids_.assign(ids.begin(), ids.end());
  ids = {};
}

std::span<const uint8_t> EncodedColumn::token_bytes() const {
  return narrow_ids_.empty() ? AsBytes(ids) : AsBytes(narrow_ids_);
}

}  // namespace muster::tools
