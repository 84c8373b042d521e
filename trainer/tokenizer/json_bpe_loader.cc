#include "trainer/tokenizer/json_bpe_loader.h"

#include <fmt/format.h>

#include <utility>

#include "trainer/tokenizer/byte_level.h"
#include "trainer/tokenizer/llama3_splitter.h"
#include "trainer/tokenizer/regex_splitter.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;

constexpr int64_t kMaxId = 1 << 24;  // a sane bound for tables by id
constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

bool IsNull(const json& object, const char* key) {
  return !object.contains(key) || object[key].is_null();
}

bool Flag(const json& object, const char* key, bool otherwise) {
  return IsNull(object, key) ? otherwise : object[key].get<bool>();
}

int32_t CheckedId(int64_t id) {
  if (id < 0 || id >= kMaxId) {
    throw TokenizerError(fmt::format("the token id {} is out of range", id));
  }
  return static_cast<int32_t>(id);
}

int32_t CheckedId(const json& value) {
  if (!value.is_number_integer()) throw TokenizerError(value.dump() + " is not a token id");
  return CheckedId(value.get<int64_t>());
}

}  // namespace

BpeParts JsonBpeLoader::Load() {
  if (!IsNull(root_, "normalizer")) RefuseNormalizer(root_["normalizer"]);
  LoadModel(root_.at("model"));
  LoadAddedTokens();
  if (!IsNull(root_, "pre_tokenizer")) AddPreTokenizer(root_["pre_tokenizer"]);
  if (!byte_level_) {
    throw TokenizerError(
        "pre_tokenizer: no ByteLevel step; only byte-level BPE tokenizers are supported");
  }
  if (options_.include_special_tokens && !IsNull(root_, "post_processor")) {
    AddPostProcessor(root_["post_processor"]);
  }
  parts_.vocab_size = static_cast<int64_t>(ids_.size());
  return std::move(parts_);
}

std::optional<int32_t> JsonBpeLoader::IdOf(const std::string& token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
}

void JsonBpeLoader::RefuseNormalizer(const json& normalizer) const {
  const std::string type = normalizer.at("type");
  if (type == "Sequence" && normalizer.at("normalizers").empty()) return;
  throw TokenizerError("normalizer: '" + type + "' is not supported (null is)");
}

void JsonBpeLoader::SetText(int32_t id, std::string text) {
  const auto index = static_cast<size_t>(id);
  if (index >= parts_.token_text.size()) {
    parts_.token_text.resize(index + 1);
    parts_.has_token.resize(index + 1);
  }
  parts_.token_text[index] = std::move(text);
  parts_.has_token[index] = true;
}

void JsonBpeLoader::LoadModel(const json& model) {
  // Old files leave the type out.
  const std::string type = IsNull(model, "type") ? "BPE" : model["type"].get<std::string>();
  if (type != "BPE") throw TokenizerError("model.type: '" + type + "' is not supported (BPE is)");
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!IsNull(model, key) && !model[key].get<std::string>().empty()) {
      throw TokenizerError(fmt::format("model.{} is not supported", key));
    }
  }
  if (!IsNull(model, "dropout") && model["dropout"].get<double>() != 0.0) {
    throw TokenizerError("model.dropout: encoding must not depend on chance");
  }
  if (Flag(model, "byte_fallback", false)) {
    throw TokenizerError("model.byte_fallback is not supported");
  }
  if (file_.vocab.empty()) throw TokenizerError("model.vocab is missing or empty");
  ids_.reserve(file_.vocab.size());
  for (const auto& [token, value] : file_.vocab) {
    const int32_t id = CheckedId(value);
    ids_.emplace(token, id);
    std::optional<std::string> bytes = DecodeByteLevel(token);
    SetText(id, bytes ? *bytes : token);
    if (bytes) parts_.model.AddToken(std::move(*bytes), id);
  }
  parts_.model.set_whole_words(Flag(model, "ignore_merges", false));
  if (!IsNull(model, "unk_token")) {
    const std::string unknown = model["unk_token"];
    if (const auto id = IdOf(unknown)) {
      parts_.model.set_unknown(*id, Flag(model, "fuse_unk", false));
    }
  }
  LoadMerges();
  parts_.model.Finish();
}

void JsonBpeLoader::LoadMerges() {
  uint32_t rank = 0;
  for (const auto& [left, right] : file_.merges) {
    parts_.model.AddMerge(MergeId(left, rank), MergeId(right, rank), rank,
                          MergeId(left + right, rank));
    ++rank;
  }
}

int32_t JsonBpeLoader::MergeId(const std::string& token, uint32_t rank) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) {
    throw TokenizerError(
        fmt::format("model.merges[{}]: '{}' is not in the vocabulary", rank, token));
  }
  return found->second;
}

void JsonBpeLoader::LoadAddedTokens() {
  if (IsNull(root_, "added_tokens")) return;
  for (const json& entry : root_["added_tokens"]) {
    AddedToken token;
    token.content = entry.at("content");
    token.id = CheckedId(entry.at("id"));
    token.special = Flag(entry, "special", false);
    token.single_word = Flag(entry, "single_word", false);
    token.lstrip = Flag(entry, "lstrip", false);
    token.rstrip = Flag(entry, "rstrip", false);
    token.normalized = Flag(entry, "normalized", !token.special);
    ids_.emplace(token.content, token.id);
    SetText(token.id, token.content);
    if (token.special && options_.split_special_tokens) continue;
    parts_.added.push_back(std::move(token));
  }
}

void JsonBpeLoader::AddPreTokenizer(const json& step) {
  const std::string type = step.at("type");
  if (type == "Sequence") {
    for (const json& inner : step.at("pretokenizers")) AddPreTokenizer(inner);
  } else if (type == "Split") {
    AddSplit(step);
  } else if (type == "Digits") {
    AddRegex(Flag(step, "individual_digits", false) ? "\\p{N}" : "\\p{N}+", true);
  } else if (type == "ByteLevel") {
    byte_level_ = true;
    parts_.add_prefix_space = Flag(step, "add_prefix_space", true);
    if (parts_.add_prefix_space && !parts_.splitters.empty()) {
      throw TokenizerError("pre_tokenizer: add_prefix_space after another step is not supported");
    }
    if (Flag(step, "use_regex", true)) AddRegex(kGpt2Pattern, true);
  } else {
    throw TokenizerError("pre_tokenizer: '" + type +
                         "' is not supported (Sequence, Split, Digits, ByteLevel are)");
  }
}

void JsonBpeLoader::AddSplit(const json& step) {
  const std::string behavior = step.at("behavior");
  const bool invert = Flag(step, "invert", false);
  const json& pattern = step.at("pattern");
  if (!pattern.contains("Regex")) {
    throw TokenizerError("pre_tokenizer: a Split pattern other than Regex is not supported");
  }
  if (behavior == "Isolated") {
    AddRegex(pattern["Regex"], true);
  } else if (behavior == "Removed" && invert) {
    AddRegex(pattern["Regex"], false);
  } else {
    throw TokenizerError(fmt::format(
        "pre_tokenizer: the Split behavior '{}' with invert {} is not supported (Isolated is, and "
        "Removed with invert true)",
        behavior, invert));
  }
}

void JsonBpeLoader::AddRegex(const std::string& pattern, bool keep_gaps) {
  if (pattern == Llama3Splitter::kPattern) {
    parts_.splitters.push_back(std::make_unique<Llama3Splitter>());
  } else {
    parts_.splitters.push_back(std::make_unique<RegexSplitter>(pattern, keep_gaps));
  }
}

void JsonBpeLoader::AddPostProcessor(const json& processor) {
  const std::string type = processor.at("type");
  if (type == "Sequence") {
    for (const json& inner : processor.at("processors")) AddPostProcessor(inner);
  } else if (type == "TemplateProcessing") {
    AddTemplate(processor);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    parts_.prefix.insert(parts_.prefix.begin(), CheckedId(processor.at("cls").at(1)));
    parts_.suffix.push_back(CheckedId(processor.at("sep").at(1)));
  } else if (type != "ByteLevel") {  // that one only moves offsets
    throw TokenizerError("post_processor: '" + type + "' is not supported");
  }
}

void JsonBpeLoader::AddTemplate(const json& processor) {
  std::vector<int32_t> prefix;
  bool after_text = false;
  for (const json& piece : processor.at("single")) {
    if (piece.contains("Sequence")) {
      if (after_text) throw TokenizerError("post_processor: the text stands twice in 'single'");
      after_text = true;
      continue;
    }
    const std::string name = piece.at("SpecialToken").at("id");
    for (const json& id : processor.at("special_tokens").at(name).at("ids")) {
      (after_text ? parts_.suffix : prefix).push_back(CheckedId(id));
    }
  }
  if (!after_text) throw TokenizerError("post_processor: 'single' has no place for the text");
  parts_.prefix.insert(parts_.prefix.begin(), prefix.begin(), prefix.end());
}

}  // namespace muster::tokenizer
