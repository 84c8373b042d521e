#include "trainer/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace muster::tokenizer {
namespace {

std::vector<AddedToken> Select(const std::vector<AddedToken>& tokens, bool normalized) {
  std::vector<AddedToken> selected;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(selected),
               [normalized](const AddedToken& token) { return token.normalized == normalized; });
  return selected;
}

}  // namespace

class BpeTokenizer::BpeTextEncoder : public Encoder {
 public:
  explicit BpeTextEncoder(const BpeTokenizer& tokenizer)
      : tokenizer_(tokenizer), words_(tokenizer.parts_.model) {
    for (const auto& splitter : tokenizer.parts_.splitters) splitters_.push_back(splitter->Clone());
  }

  void Encode(std::string_view text, std::vector<int32_t>& ids) override {
    const BpeParts& parts = tokenizer_.parts_;
    ids.insert(ids.end(), parts.prefix.begin(), parts.prefix.end());
    stretches_.clear();
    tokenizer_.plain_.Split(text, stretches_);
    for (const Stretch& stretch : stretches_) {
      if (stretch.id >= 0) {
        ids.push_back(stretch.id);
      } else if (tokenizer_.normalized_.empty()) {
        EncodePlain(stretch.text, ids);
      } else {
        EncodeNormalized(stretch.text, ids);
      }
    }
    ids.insert(ids.end(), parts.suffix.begin(), parts.suffix.end());
  }

 private:
  void EncodeNormalized(std::string_view text, std::vector<int32_t>& ids) {
    inner_.clear();
    tokenizer_.normalized_.Split(text, inner_);
    for (const Stretch& stretch : inner_) {
      if (stretch.id >= 0) {
        ids.push_back(stretch.id);
      } else {
        EncodePlain(stretch.text, ids);
      }
    }
  }

  void EncodePlain(std::string_view text, std::vector<int32_t>& ids) {
    if (tokenizer_.parts_.add_prefix_space && !text.starts_with(' ')) {
      prefixed_.assign(1, ' ').append(text);
      text = prefixed_;
    }
    SplitWith(0, text, ids);
  }

  void SplitWith(size_t stage, std::string_view text, std::vector<int32_t>& ids) {
    if (stage == splitters_.size()) {
      words_.Encode(text, ids);
      return;
    }
    Splitter& splitter = *splitters_[stage];
    for (size_t at = 0; at < text.size();) {
      const Piece piece = splitter.Next(text, at);
      if (piece.keep) SplitWith(stage + 1, text.substr(at, piece.end - at), ids);
      at = piece.end;
    }
  }

  const BpeTokenizer& tokenizer_;
  BpeEncoder words_;
  std::vector<std::unique_ptr<Splitter>> splitters_;
  std::vector<Stretch> stretches_;
  std::vector<Stretch> inner_;
  std::string prefixed_;
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : parts_(std::move(parts)),
      plain_(Select(parts_.added, false)),
      normalized_(Select(parts_.added, true)) {}

std::unique_ptr<Encoder> BpeTokenizer::NewEncoder() const {
  return std::make_unique<BpeTextEncoder>(*this);
}

std::string BpeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= parts_.has_token.size() || !parts_.has_token[id]) {
      throw TokenizerError(fmt::format("{} is not the id of a token", id));
    }
    text += parts_.token_text[id];
  }
  return text;
}

}  // namespace muster::tokenizer
