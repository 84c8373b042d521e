#include "trainer/tokenizer/hf_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/tokenizer/byte_level.h"
#include "trainer/tokenizer/hf_decoder.h"
#include "trainer/tokenizer/hf_post_processor.h"
#include "trainer/tokenizer/hf_pre_tokenizer.h"
#include "trainer/tokenizer/marker_splitter.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

constexpr char kMarker[] = "\u2581";  // stands for a space in vocabularies of characters

// Tables go by id: ids far above the number of tokens are a damaged file.
int64_t IdLimit(size_t tokens) {
  return static_cast<int64_t>(8 * tokens + 65536);
}

}  // namespace

BpeParts HfLoader::Load() {
  if (const auto normalizer = root_.Find("normalizer")) {
    parts_.normalizer = LoadNormalizer(*normalizer);
  }
  if (const auto pre_tokenizer = root_.Find("pre_tokenizer")) {
    PreTokenizer loaded = LoadPreTokenizer(*pre_tokenizer);
    parts_.steps = std::move(loaded.steps);
    byte_level_ = loaded.byte_level;
  }
  const JsonView model = root_.At("model");
  LoadVocabulary(model);
  LoadModelOptions(model);
  LoadMerges();
  parts_.model.Finish();
  LoadAddedTokens();
  LoadSurround();
  LoadTexts();
  CutAtMarkers();
  parts_.eod = NamedId(config_.eos, "eos_token");
  parts_.pad = NamedId(config_.pad, "pad_token");
  parts_.vocab_size = static_cast<int64_t>(ids_.size());
  return std::move(parts_);
}

void HfLoader::LoadVocabulary(const JsonView& model) {
  // Old files leave the type out.
  const auto type = model.Find("type");
  if (type && type->Text() != "BPE") {
    type->Fail("'" + type->Text() + "' is not supported (BPE is)");
  }
  if (file_.vocab.empty()) throw TokenizerError("model.vocab: is missing or empty");
  parts_.model.set_unit(byte_level_ ? SymbolUnit::kBytes : SymbolUnit::kCharacters);
  ids_.reserve(file_.vocab.size());
  const int64_t limit = IdLimit(file_.vocab.size());
  for (const auto& [token, id] : file_.vocab) {
    if (id < 0 || id >= limit) {
      throw TokenizerError(
          fmt::format("model.vocab: the id {} of '{}' is out of range", id, token));
    }
    const auto narrow = static_cast<int32_t>(id);
    ids_.insert_or_assign(token, narrow);
    if (!byte_level_) {
      parts_.model.AddToken(token, narrow);
    } else if (auto bytes = DecodeByteLevel(token)) {
      parts_.model.AddToken(std::move(*bytes), narrow);
    }
  }
  model_size_ = ids_.size();
}

void HfLoader::LoadModelOptions(const JsonView& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const auto text = model.Find(key);
    if (text && !text->Text().empty()) text->Fail("is not supported");
  }
  const auto dropout = model.Find("dropout");
  if (dropout && dropout->Number() != 0.0) dropout->Fail("encoding must not depend on chance");
  parts_.model.set_whole_words(model.BoolOr("ignore_merges", false));
  if (const auto unknown = model.Find("unk_token")) {
    parts_.model.set_unknown(IdOf(unknown->Text()).value_or(BpeModel::kMissing),
                             model.BoolOr("fuse_unk", false));
  }
  if (!model.BoolOr("byte_fallback", false)) return;
  if (byte_level_) model.At("byte_fallback").Fail("is not supported together with ByteLevel");
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = IdOf(fmt::format("<0x{:02X}>", byte));
    parts_.model.set_fallback(static_cast<uint8_t>(byte), id.value_or(BpeModel::kNone));
  }
}

void HfLoader::LoadMerges() {
  uint32_t rank = 0;
  for (const auto& [left, right] : file_.merges) {
    parts_.model.AddMerge(MergeId(left, rank), MergeId(right, rank), rank,
                          MergeId(left + right, rank));
    ++rank;
  }
}

int32_t HfLoader::MergeId(const std::string& token, uint32_t rank) const {
  const auto id = IdOf(token);
  if (!id) {
    throw TokenizerError(
        fmt::format("model.merges[{}]: '{}' is not in the vocabulary", rank, token));
  }
  return *id;
}

std::optional<int32_t> HfLoader::IdOf(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

std::optional<int32_t> HfLoader::NamedId(const std::optional<std::string>& token,
                                         const char* key) const {
  if (!token) return std::nullopt;
  const auto id = IdOf(*token);
  if (!id) throw TokenizerError(fmt::format("{} '{}' is not in the vocabulary", key, *token));
  return id;
}

void HfLoader::LoadAddedTokens() {
  if (const auto tokens = root_.Find("added_tokens")) {
    for (const JsonView& entry : tokens->Items()) AddToken(ReadAddedToken(entry));
  }
  for (const AddedToken& token : config_.added) AddToken(token);
  for (const AddedToken& token : config_.named) {
    if (!added_.contains(token.content)) AddToken(token);
  }
  if (!options_.split_special_tokens && !config_.split_special_tokens) return;
  for (AddedToken& token : parts_.added) token.as_text = token.special;
}

// As in the reference: a token of the vocabulary keeps its id, another one gets the next, whatever
// the file says; a token that is added twice is as it was added last.
void HfLoader::AddToken(AddedToken token) {
  if (token.content.empty()) return;
  token.id = IdOf(token.content).value_or(NextId());
  last_added_id_ = std::max(last_added_id_, token.id);
  ids_.insert_or_assign(token.content, token.id);
  const auto [place, is_new] = added_.emplace(token.content, parts_.added.size());
  if (is_new) parts_.added.emplace_back();
  parts_.added[place->second] = std::move(token);
}

int32_t HfLoader::NextId() const {
  return std::max(last_added_id_ + 1, static_cast<int32_t>(model_size_));
}

void HfLoader::LoadSurround() {
  if (!options_.include_special_tokens) return;
  if (const auto processor = root_.Find("post_processor")) {
    Surround loaded = LoadPostProcessor(*processor);
    parts_.prefix = std::move(loaded.prefix);
    parts_.suffix = std::move(loaded.suffix);
  }
}

void HfLoader::LoadTexts() {
  TokenDecoder decoder;
  const auto entry = root_.Find("decoder");
  if (entry && !byte_level_) decoder = LoadDecoder(*entry);
  parts_.strip_space = decoder.strip_space;
  parts_.strip_first_token = decoder.strip_first_token;
  const auto set_text = [&](const std::string& token, size_t index) {
    parts_.has_token[index] = true;
    parts_.is_byte[index] = decoder.IsByte(token);
    parts_.token_text[index] =
        byte_level_ ? DecodeByteLevel(token).value_or(token) : decoder.TextOf(token);
  };
  for (const auto& [token, id] : ids_) {
    const auto index = static_cast<size_t>(id);
    if (index >= parts_.token_text.size()) {
      parts_.token_text.resize(index + 1);
      parts_.has_token.resize(index + 1);
      parts_.is_byte.resize(index + 1);
    }
    set_text(token, index);
  }
  // The package decodes an added token as it looks for it.
  for (const AddedToken& token : parts_.added) {
    std::string text = token.content;
    if (token.normalized && parts_.normalizer != nullptr) parts_.normalizer->Apply(text);
    set_text(text, static_cast<size_t>(token.id));
  }
}

void HfLoader::CutAtMarkers() {
  if (byte_level_ || !IdOf(kMarker)) return;
  const bool joined = std::any_of(file_.vocab.begin(), file_.vocab.end(), [](const auto& entry) {
    return HasInnerMarker(entry.first, kMarker);
  });
  if (joined) return;
  PreStep cut;
  cut.splitter = std::make_unique<MarkerSplitter>(kMarker, true);
  parts_.steps.push_back(std::move(cut));
}

}  // namespace muster::tokenizer
