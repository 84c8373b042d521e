#include "trainer/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "trainer/tokenizer/bpe_tokenizer.h"
#include "trainer/tokenizer/byte_level.h"
#include "trainer/tokenizer/llama3_splitter.h"
#include "trainer/tokenizer/regex_splitter.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr int64_t kMaxId = 1 << 24;  // a sane bound for tables by id
constexpr char kGpt2Pattern[] =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

json ParseFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw TokenizerError("open " + path.string() + ": no such readable file");
  try {
    return json::parse(in);
  } catch (const json::exception& error) {
    throw TokenizerError(path.string() + ": " + error.what());
  }
}

bool IsNull(const json& object, const char* key) {
  return !object.contains(key) || object[key].is_null();
}

bool Flag(const json& object, const char* key, bool otherwise) {
  return IsNull(object, key) ? otherwise : object[key].get<bool>();
}

int32_t CheckedId(const json& value) {
  const auto id = value.get<int64_t>();
  if (id < 0 || id >= kMaxId)
    throw TokenizerError(fmt::format("the token id {} is out of range", id));
  return static_cast<int32_t>(id);
}

// One reading of tokenizer.json.
class Loader {
 public:
  Loader(const json& root, const HfOptions& options) : root_(root), options_(options) {}

  BpeParts Load() {
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

  std::optional<int32_t> IdOf(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? std::nullopt : std::optional<int32_t>(found->second);
  }

 private:
  void RefuseNormalizer(const json& normalizer) {
    const std::string type = normalizer.at("type");
    if (type == "Sequence" && normalizer.at("normalizers").empty()) return;
    throw TokenizerError("normalizer: '" + type + "' is not supported (null is)");
  }

  void SetText(int32_t id, std::string text) {
    const auto index = static_cast<size_t>(id);
    if (index >= parts_.token_text.size()) {
      parts_.token_text.resize(index + 1);
      parts_.has_token.resize(index + 1);
    }
    parts_.token_text[index] = std::move(text);
    parts_.has_token[index] = true;
  }

  void LoadModel(const json& model) {
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
    for (const auto& [token, value] : model.at("vocab").items()) {
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
    LoadMerges(model.at("merges"));
    parts_.model.Finish();
  }

  // "left right" or ["left", "right"].
  void LoadMerges(const json& merges) {
    uint32_t rank = 0;
    std::string joined;
    for (const json& merge : merges) {
      std::string_view left;
      std::string_view right;
      if (merge.is_string()) {
        const auto& text = merge.get_ref<const std::string&>();
        const size_t space = text.find(' ');
        if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
          throw TokenizerError(fmt::format("model.merges[{}]: '{}' is not two tokens", rank, text));
        }
        left = std::string_view(text).substr(0, space);
        right = std::string_view(text).substr(space + 1);
      } else {
        left = merge.at(0).get_ref<const std::string&>();
        right = merge.at(1).get_ref<const std::string&>();
      }
      joined.assign(left).append(right);
      parts_.model.AddMerge(MergeId(left, rank), MergeId(right, rank), rank, MergeId(joined, rank));
      ++rank;
    }
  }

  int32_t MergeId(std::string_view token, uint32_t rank) {
    scratch_.assign(token);
    const auto found = ids_.find(scratch_);
    if (found == ids_.end()) {
      throw TokenizerError(
          fmt::format("model.merges[{}]: '{}' is not in the vocabulary", rank, token));
    }
    return found->second;
  }

  void LoadAddedTokens() {
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

  void AddPreTokenizer(const json& step) {
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

  void AddSplit(const json& step) {
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
      throw TokenizerError("pre_tokenizer: the Split behavior '" + behavior + "' with invert " +
                           (invert ? "true" : "false") +
                           " is not supported (Isolated is, and Removed with invert true)");
    }
  }

  void AddRegex(const std::string& pattern, bool keep_gaps) {
    if (pattern == Llama3Splitter::kPattern) {
      parts_.splitters.push_back(std::make_unique<Llama3Splitter>());
    } else {
      parts_.splitters.push_back(std::make_unique<RegexSplitter>(pattern, keep_gaps));
    }
  }

  void AddPostProcessor(const json& processor) {
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

  void AddTemplate(const json& processor) {
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

  const json& root_;
  const HfOptions& options_;
  BpeParts parts_;
  bool byte_level_ = false;
  std::unordered_map<std::string, int32_t> ids_;  // by token as written in the file
  std::string scratch_;
};

// "eos_token": "text" or {"content": "text"}.
std::optional<std::string> EosToken(const fs::path& config_path) {
  if (!fs::exists(config_path)) return std::nullopt;
  const json config = ParseFile(config_path);
  if (IsNull(config, "eos_token")) return std::nullopt;
  const json& eos = config["eos_token"];
  return (eos.is_object() ? eos.at("content") : eos).get<std::string>();
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path, const HfOptions& options) {
  const fs::path file = fs::is_directory(path) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const json root = ParseFile(file);
  try {
    Loader loader(root, options);
    BpeParts parts = loader.Load();
    const fs::path config_path = file.parent_path() / "tokenizer_config.json";
    if (const auto eos = EosToken(config_path)) {
      parts.eod = loader.IdOf(*eos);
      if (!parts.eod) {
        throw TokenizerError("eos_token '" + *eos + "' of " + config_path.string() +
                             " is not in the vocabulary");
      }
    }
    return std::make_unique<BpeTokenizer>(std::move(parts));
  } catch (const json::exception& error) {
    throw TokenizerError(file.string() + ": " + error.what());
  } catch (const TokenizerError& error) {
    throw TokenizerError(file.string() + ": " + error.what());
  }
}

}  // namespace muster::tokenizer
