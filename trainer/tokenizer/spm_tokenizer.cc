#include "trainer/tokenizer/spm_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/tokenizer/read_file.h"
#include "trainer/tokenizer/spm_spaces.h"
#include "trainer/tokenizer/utf8.h"

namespace muster::tokenizer {
namespace {

// A text is cut, where it can be, into parts of at least so many bytes: the library takes up to
// kBytesPerByte bytes of memory for each byte that it works on.
constexpr size_t kCutBytes = 4000;
constexpr size_t kBytesPerByte = 256;

std::optional<int32_t> IfThere(int32_t id) {
  return id >= 0 ? std::optional<int32_t>(id) : std::nullopt;
}

}  // namespace

class SpmTokenizer::SpmEncoder : public Encoder {
 public:
  SpmEncoder(const SpmTokenizer& tokenizer, WorkMemory* memory)
      : tokenizer_(tokenizer), memory_(memory) {}

  void Encode(std::string_view text, std::vector<int32_t>& ids) override {
    EncodeInParts(text, ids, [] {});
  }

  void EncodeInParts(std::string_view text, std::vector<int32_t>& ids,
                     const std::function<void()>& take) override {
    CheckUtf8(text);
    while (tokenizer_.can_cut_ && text.size() > kCutBytes) {
      const size_t space = FindCut(text);
      if (space == std::string_view::npos) break;
      EncodePart(text.substr(0, space), ids);
      text.remove_prefix(space + 1);
      if (ids.size() >= kPartIds) take();
    }
    EncodePart(text, ids);
  }

 private:
  // A space to cut at, the first from kCutBytes on.
  static size_t FindCut(std::string_view text) {
    const auto is_word = [&text](size_t at) {
      const char c = text[at];
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    size_t at = text.find(' ', kCutBytes);
    while (at < text.size() && !(at + 1 < text.size() && is_word(at - 1) && is_word(at + 1))) {
      at = text.find(' ', at + 1);
    }
    return at;
  }

  void EncodePart(std::string_view text, std::vector<int32_t>& ids) {
    WorkMemory::Hold hold;
    if (memory_ != nullptr) {
      hold = memory_->Take(text.size(), kBytesPerByte,
                           tokenizer_.can_cut_ ? "a text without a space between two words"
                                               : "a text for this SentencePiece model");
    }
    std::string marked;
    if (tokenizer_.keep_spaces_) text = marked = MarkExtraSpaces(text);
    if (!tokenizer_.specials_.empty()) text = EncodeToLastSpecial(text, ids);
    if (tokenizer_.keep_spaces_) {
      EncodeMarked(text, ids);
    } else {
      tokenizer_.engine().Encode(text, ids);
    }
  }

  // Returns what follows the last special token.
  std::string_view EncodeToLastSpecial(std::string_view text, std::vector<int32_t>& ids) {
    const size_t first_id = ids.size();
    std::vector<size_t> places(tokenizer_.specials_.size());  // the next place of each
    for (size_t i = 0; i < places.size(); ++i) places[i] = text.find(tokenizer_.specials_[i].text);
    for (size_t at = 0;;) {
      for (size_t i = 0; i < places.size(); ++i) {
        if (places[i] < at) places[i] = text.find(tokenizer_.specials_[i].text, at);
      }
      const auto next = std::min_element(places.begin(), places.end());
      if (*next == std::string_view::npos) return text.substr(at);
      const Special& special = tokenizer_.specials_[static_cast<size_t>(next - places.begin())];
      std::vector<int32_t> plain;
      tokenizer_.engine().Encode(text.substr(at, *next - at), plain);
      // A space between two special tokens, or after one, is not a token.
      const bool after_special = ids.size() > first_id && tokenizer_.IsSpecial(ids.back());
      const bool drop = after_special && !plain.empty() && plain[0] == tokenizer_.separator_id_;
      ids.insert(ids.end(), plain.begin() + (drop ? 1 : 0), plain.end());
      ids.push_back(special.id);
      at = *next + special.text.size();
    }
  }

  // Each part keeps its mark while the library sees it, and loses the mark's token.
  void EncodeMarked(std::string_view text, std::vector<int32_t>& ids) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(kExtraSpace, at), text.size());
      if (end > at) {
        tokenizer_.engine().Encode(std::string(text.substr(at, end - at)).append(kExtraSpace), ids);
        ids.pop_back();
      }
      at = end + kExtraSpace.size();
    }
  }

  const SpmTokenizer& tokenizer_;
  WorkMemory* const memory_;
};

SpmTokenizer::SpmTokenizer(const std::string& model, const SpmOptions& options,
                           const OpenSpmEngine& open_engine)
    : options_(options) {
  const SpmFile file = ReadSpmFile(model);
  piece_count_ = vocab_size_ = static_cast<int64_t>(file.pieces.size());
  separator_id_ = file.IdOf(kSpmSpace);
  eod_ = IfThere(file.ControlId(file.eos_piece));
  pad_ = IfThere(file.ControlId(file.pad_piece));
  if (!options.special_tokens.empty() && !options.legacy) {
    throw TokenizerError(
        "--tokenizer-special-tokens needs --tokenizer-sentencepiece-legacy; otherwise special "
        "tokens are given when the model is trained");
  }
  AddSpecials(file, options.special_tokens);
  // What stands before a special token is treated otherwise than what follows the last one.
  can_cut_ = file.CanCutAtSpaces() && specials_.empty();
  if (!open_engine) return;
  engine_ = open_engine(model);
  if (!options.keep_spaces) return;
  std::vector<int32_t> one;
  std::vector<int32_t> two;
  engine_->Encode("x y", one);
  engine_->Encode("x  y", two);
  keep_spaces_ = one == two;
}

// A token of the model keeps its id, another one gets the next.
void SpmTokenizer::AddSpecials(const SpmFile& file, const std::vector<std::string>& tokens) {
  const int32_t unknown = file.unknown_id();
  for (const std::string& token : tokens) {
    if (token.empty()) throw TokenizerError("--tokenizer-special-tokens: a token is empty");
    const bool there = std::any_of(specials_.begin(), specials_.end(),
                                   [&](const Special& special) { return special.text == token; });
    int32_t id = file.IdOf(token);
    if (id == unknown && there) continue;
    if (id == unknown) id = static_cast<int32_t>(vocab_size_++);
    special_text_[id] = token;
    if (!there) specials_.push_back({token, id});
  }
}

const SpmEngine& SpmTokenizer::engine() const {
  if (engine_ == nullptr) throw TokenizerError("this program is built without SentencePiece");
  return *engine_;
}

std::unique_ptr<Encoder> SpmTokenizer::NewEncoder(const EncoderOptions& options) const {
  return std::make_unique<SpmEncoder>(*this, options.memory);
}

std::string SpmTokenizer::DecodePlain(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= piece_count_) {
      throw TokenizerError(fmt::format("{} is not the id of a token", id));
    }
  }
  return ids.empty() ? "" : engine().Decode(ids);
}

std::string SpmTokenizer::Decode(std::span<const int32_t> ids) const {
  std::string text;
  std::vector<int32_t> plain;
  for (const int32_t id : ids) {
    if (!IsSpecial(id)) {
      plain.push_back(id);
      continue;
    }
    text += DecodePlain(plain) + " " + special_text_.at(id) + " ";
    plain.clear();
  }
  text += DecodePlain(plain);
  return options_.legacy ? PythonStrip(text) : text;
}

std::unique_ptr<Tokenizer> LoadSpm(const std::string& path, const SpmOptions& options,
                                   const OpenSpmEngine& open_engine) {
  const std::string model = ReadWholeFile(path);
  try {
    return std::make_unique<SpmTokenizer>(model, options, open_engine);
  } catch (const TokenizerError& error) {
    throw TokenizerError(path + ": " + error.what());
  }
}

}  // namespace muster::tokenizer
