#include "trainer/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "trainer/tokenizer/bpe_encoder.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// Tokens that are looked for in normalized text are normalized like it.
std::vector<AddedToken> Select(const std::vector<AddedToken>& tokens, bool normalized,
                               const Normalizer* normalizer) {
  std::vector<AddedToken> selected;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(selected),
               [normalized](const AddedToken& token) { return token.normalized == normalized; });
  for (AddedToken& token : selected) {
    if (normalizer != nullptr) normalizer->Apply(token.content);
  }
  return selected;
}

// What a text of one long word takes, a byte, when it is rewritten; 0: it never is.
size_t RewritingFactor(const BpeParts& parts) {
  constexpr size_t kPerByte = 6;    // the text itself, and a word made of it
  constexpr size_t kPerCopied = 4;  // what the text became, its copies and symbols
  size_t growth = parts.normalizer != nullptr ? parts.normalizer->growth() : 0;
  for (const PreStep& step : parts.steps) {
    if (step.rewrite != nullptr) growth = std::max<size_t>(growth, 1) * step.rewrite->growth();
    if (!step.prefix.empty()) growth = std::max<size_t>(growth, 1);
  }
  return growth == 0 ? 0 : kPerByte + kPerCopied * growth;
}

// A run of byte tokens: characters, or none of them is.
void AppendBytes(std::string& bytes, std::string& text) {
  if (ValidUtf8Prefix(bytes) == bytes.size()) {
    text += bytes;
  } else {
    for (size_t i = 0; i < bytes.size(); ++i) text += "\ufffd";
  }
  bytes.clear();
}

}  // namespace

class BpeTokenizer::BpeTextEncoder : public Encoder {
 public:
  BpeTextEncoder(const BpeTokenizer& tokenizer, const EncoderOptions& options)
      : tokenizer_(tokenizer),
        memory_(options.memory),
        words_(tokenizer.parts_.model, WordOptions(tokenizer, options)) {
    for (const PreStep& step : tokenizer.parts_.steps) {
      if (step.rewrite == nullptr && step.prefix.empty() && step.splitter == nullptr) continue;
      stages_.push_back({&step, step.splitter ? step.splitter->Clone() : nullptr, {}});
    }
  }

  void Encode(std::string_view text, std::vector<int32_t>& ids) override {
    CheckUtf8(text);
    WorkMemory::Hold hold;
    if (memory_ != nullptr && tokenizer_.rewriting_factor_ > 0) {
      hold = memory_->Take(text.size(), tokenizer_.rewriting_factor_,
                           "a text that this tokenizer rewrites first");
    }
    const BpeParts& parts = tokenizer_.parts_;
    ids.insert(ids.end(), parts.prefix.begin(), parts.prefix.end());
    tokenizer_.plain_.Split(text, [&](const Stretch& stretch) {
      if (stretch.id >= 0) {
        AddToken(stretch.id, ids);
      } else {
        EncodeStretch(stretch.text, stretch.text.data() == text.data(), ids);
      }
    });
    ids.insert(ids.end(), parts.suffix.begin(), parts.suffix.end());
  }

  void EncodeInParts(std::string_view text, std::vector<int32_t>& ids,
                     const std::function<void()>& take) override {
    take_ = &take;
    try {
      Encode(text, ids);
    } catch (...) {
      take_ = nullptr;
      throw;
    }
    take_ = nullptr;
  }

 private:
  // The memory for a text that is rewritten is enough for its words, too.
  static EncoderOptions WordOptions(const BpeTokenizer& tokenizer, EncoderOptions options) {
    if (tokenizer.rewriting_factor_ > 0) options.memory = nullptr;
    return options;
  }

  struct Stage {
    const PreStep* step;
    std::unique_ptr<Splitter> splitter;
    std::string text;  // a piece as the step rewrote it
  };

  // `first`: the stretch starts the text.
  void EncodeStretch(std::string_view text, bool first, std::vector<int32_t>& ids) {
    if (tokenizer_.parts_.normalizer != nullptr) {
      normalized_ = text;
      tokenizer_.parts_.normalizer->Apply(normalized_);
      text = normalized_;
    }
    if (tokenizer_.normalized_.empty()) {
      RunStage(0, text, first, ids);
      return;
    }
    tokenizer_.normalized_.Split(text, [&](const Stretch& stretch) {
      if (stretch.id >= 0) {
        AddToken(stretch.id, ids);
      } else {
        RunStage(0, stretch.text, first && stretch.text.data() == text.data(), ids);
      }
    });
  }

  void RunStage(size_t index, std::string_view text, bool first, std::vector<int32_t>& ids) {
    if (text.empty()) return;
    if (index == stages_.size()) {
      EncodeWords({&text, 1}, text, ids);
      return;
    }
    Stage& stage = stages_[index];
    const PreStep& step = *stage.step;
    if (step.rewrite != nullptr) {
      stage.text = text;
      step.rewrite->Apply(stage.text);
      text = stage.text;
    }
    if (!step.prefix.empty() && (first || !step.prefix_only_first) &&
        !text.starts_with(step.prefix)) {
      stage.text = step.prefix + std::string(text);
      text = stage.text;
    }
    if (stage.splitter == nullptr) {
      RunStage(index + 1, text, first, ids);
      return;
    }
    if (index + 1 == stages_.size()) {
      Cut(*stage.splitter, text, ids);
      return;
    }
    for (size_t at = 0; at < text.size();) {
      const Piece piece = stage.splitter->Next(text, at);
      if (piece.keep) RunStage(index + 1, text.substr(at, piece.end - at), first && at == 0, ids);
      at = piece.end;
    }
  }

  // The last stage: its pieces are words.
  void Cut(Splitter& splitter, std::string_view text, std::vector<int32_t>& ids) {
    std::array<std::string_view, BpeEncoder::kBatch> words;
    size_t count = 0;
    for (size_t at = 0; at < text.size();) {
      const Piece piece = splitter.Next(text, at);
      if (piece.keep) words[count++] = text.substr(at, piece.end - at);
      at = piece.end;
      if (count < words.size()) continue;
      EncodeWords(words, text, ids);
      count = 0;
    }
    EncodeWords(std::span(words).first(count), text, ids);
  }

  void EncodeWords(std::span<const std::string_view> words, std::string_view text,
                   std::vector<int32_t>& ids) {
    words_.Encode(words, text.data() + text.size(), take_, ids);
    if (take_ != nullptr && ids.size() >= kPartIds) (*take_)();
  }

  void AddToken(int32_t id, std::vector<int32_t>& ids) {
    ids.push_back(id);
    if (take_ != nullptr && ids.size() >= kPartIds) (*take_)();
  }

  const BpeTokenizer& tokenizer_;
  WorkMemory* const memory_;
  BpeEncoder words_;
  std::vector<Stage> stages_;
  std::string normalized_;
  const std::function<void()>* take_ = nullptr;  // during EncodeInParts
};

BpeTokenizer::BpeTokenizer(BpeParts parts)
    : parts_(std::move(parts)),
      rewriting_factor_(RewritingFactor(parts_)),
      plain_(Select(parts_.added, false, nullptr)),
      normalized_(Select(parts_.added, true, parts_.normalizer.get())) {
  parts_.is_byte.resize(parts_.has_token.size());
}

std::unique_ptr<Encoder> BpeTokenizer::NewEncoder(const EncoderOptions& options) const {
  return std::make_unique<BpeTextEncoder>(*this, options);
}

std::string BpeTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  std::string bytes;  // of a run of byte tokens
  for (const int32_t& id : ids) {
    if (id < 0 || static_cast<size_t>(id) >= parts_.has_token.size() || !parts_.has_token[id]) {
      throw TokenizerError(fmt::format("{} is not the id of a token", id));
    }
    const std::string& token = parts_.token_text[id];
    if (parts_.is_byte[id]) {
      bytes += token;
      continue;
    }
    AppendBytes(bytes, text);
    text += token;
    if (parts_.strip_first_token && &id == ids.data()) std::erase(text, ' ');
  }
  AppendBytes(bytes, text);
  if (parts_.strip_space && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

}  // namespace muster::tokenizer
