#include "trainer/tokenizer/tiktoken_file.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/tokenizer/bpe_tokenizer.h"
#include "trainer/tokenizer/llama3_splitter.h"
#include "trainer/tokenizer/match_splitter.h"
#include "trainer/tokenizer/read_file.h"

namespace muster::tokenizer {
namespace {

using Ranks = std::vector<std::string>;  // token bytes by rank

// As in Megatron.
constexpr char kPatternV1[] =
    R"([^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr char kPatternV2[] =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kNamedSpecials[] = {"<unk>", "<s>",   "</s>", "<mask>",
                                          "<pad>", "<cls>", "<sep>"};
constexpr int32_t kMegatronEod = 2;
constexpr int32_t kMegatronPad = 4;

constexpr int kLlama3Specials = 256;

std::string DecodeBase64(std::string_view text) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) throw TokenizerError("not base64");
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xff));
    }
  }
  return bytes;
}

// A list of {"rank": n, "token_bytes": base64, "token_str": ...}, in order of rank.
Ranks ReadJsonRanks(const std::string& text, size_t limit) {
  const nlohmann::json list = nlohmann::json::parse(text);
  Ranks ranks;
  for (const auto& entry : list) {
    if (ranks.size() == limit) break;
    if (entry.at("rank") != ranks.size()) {
      throw TokenizerError(fmt::format("entry {} has another rank", ranks.size()));
    }
    ranks.push_back(DecodeBase64(entry.at("token_bytes").get_ref<const std::string&>()));
    if (ranks.size() <= 256 &&
        ranks.back() != std::string(1, static_cast<char>(ranks.size() - 1))) {
      throw TokenizerError(fmt::format(
          "entry {} is not the byte of that value; the first 256 must be", ranks.size() - 1));
    }
  }
  return ranks;
}

// Lines "base64 rank", in order of rank.
Ranks ReadLineRanks(std::string_view text) {
  Ranks ranks;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const size_t space = line.find(' ');
    size_t rank = 0;
    if (space != std::string_view::npos) {
      std::from_chars(line.data() + space + 1, line.data() + line.size(), rank);
    }
    if (space == std::string_view::npos || rank != ranks.size()) {
      throw TokenizerError(
          fmt::format("line {} is not 'base64 {}'", ranks.size() + 1, ranks.size()));
    }
    ranks.push_back(DecodeBase64(line.substr(0, space)));
    begin = end + 1;
  }
  return ranks;
}

// tiktoken merges two neighbours when their bytes together are a token: every way to cut a token in
// two tokens is a merge of that token's rank.
void FillModel(const Ranks& ranks, int32_t first_id, BpeParts& parts) {
  std::unordered_map<std::string_view, int32_t> by_bytes;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].empty() || !by_bytes.emplace(ranks[rank], static_cast<int32_t>(rank)).second) {
      throw TokenizerError(fmt::format("the token of rank {} is empty or stands twice", rank));
    }
  }
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (!by_bytes.contains(std::string_view(&c, 1))) {
      throw TokenizerError(fmt::format("the byte {} is no token", byte));
    }
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string_view token = ranks[rank];
    const auto id = static_cast<int32_t>(rank) + first_id;
    parts.model.AddToken(std::string(token), id);
    parts.token_text[id] = token;
    parts.has_token[id] = true;
    for (size_t cut = 1; cut < token.size(); ++cut) {
      const auto left = by_bytes.find(token.substr(0, cut));
      const auto right = by_bytes.find(token.substr(cut));
      if (left == by_bytes.end() || right == by_bytes.end()) continue;
      parts.model.AddMerge(left->second + first_id, right->second + first_id,
                           static_cast<uint32_t>(rank), id);
    }
  }
  parts.model.set_whole_words(true);
  parts.model.Finish();
}

void AddSplitter(std::unique_ptr<Splitter> splitter, BpeParts& parts) {
  PreStep step;
  step.splitter = std::move(splitter);
  parts.steps.push_back(std::move(step));
}

void AddSpecial(std::string text, int32_t id, bool look_for, BpeParts& parts) {
  parts.token_text[id] = text;
  parts.has_token[id] = true;
  if (look_for) parts.added.push_back({.content = std::move(text), .id = id, .special = true});
}

std::string Llama3Special(int n) {
  switch (n) {
    case 0:
      return "<|begin_of_text|>";
    case 1:
      return "<|end_of_text|>";
    case 4:
      return "<|finetune_right_pad_id|>";
    case 6:
      return "<|start_header_id|>";
    case 7:
      return "<|end_header_id|>";
    case 8:
      return "<|eom_id|>";
    case 9:
      return "<|eot_id|>";
    case 10:
      return "<|python_tag|>";
    default:
      // Reserved tokens fill the places between: 0 and 1 at 2 and 3, 2 at 5, 3 and on at 11 and on.
      return fmt::format("<|reserved_special_token_{}|>", n < 5 ? n - 2 : n == 5 ? 2 : n - 8);
  }
}

void Resize(BpeParts& parts, size_t size) {
  parts.token_text.resize(size);
  parts.has_token.resize(size);
  parts.vocab_size = static_cast<int64_t>(size);
}

BpeParts MegatronParts(const std::string& text, const TiktokenOptions& options) {
  const int64_t specials = options.num_special_tokens;
  if (specials < static_cast<int64_t>(std::size(kNamedSpecials)) ||
      specials >= options.vocab_size) {
    throw TokenizerError(fmt::format("{} special tokens do not fit a vocabulary of {}", specials,
                                     options.vocab_size));
  }
  const auto wanted = static_cast<size_t>(options.vocab_size - specials);
  const Ranks ranks = ReadJsonRanks(text, wanted);
  if (ranks.size() != wanted) {
    throw TokenizerError(fmt::format("{} tokens and {} special ones are not --vocab-size {}",
                                     ranks.size(), specials, options.vocab_size));
  }
  BpeParts parts;
  Resize(parts, static_cast<size_t>(options.vocab_size));
  for (int32_t id = 0; id < specials; ++id) {
    const bool named = id < static_cast<int32_t>(std::size(kNamedSpecials));
    AddSpecial(named ? kNamedSpecials[id] : fmt::format("<SPECIAL_{}>", id), id,
               !options.split_special_tokens, parts);
  }
  FillModel(ranks, static_cast<int32_t>(specials), parts);
  if (options.pattern != "v1" && options.pattern != "v2") {
    throw TokenizerError("--tiktoken-pattern '" + options.pattern + "' is neither v1 nor v2");
  }
  AddSplitter(MakeMatchSplitter(options.pattern == "v1" ? kPatternV1 : kPatternV2,
                                MatchBehavior::kIsolated, false),
              parts);
  parts.eod = kMegatronEod;
  parts.pad = kMegatronPad;
  return parts;
}

BpeParts Llama3Parts(const std::string& text, const TiktokenOptions& options) {
  const Ranks ranks = ReadLineRanks(text);
  const auto first_special = static_cast<int32_t>(ranks.size());
  BpeParts parts;
  Resize(parts, ranks.size() + kLlama3Specials);
  for (int n = 0; n < kLlama3Specials; ++n) {
    AddSpecial(Llama3Special(n), first_special + n, !options.split_special_tokens, parts);
  }
  FillModel(ranks, 0, parts);
  AddSplitter(std::make_unique<Llama3Splitter>(), parts);
  if (options.include_special_tokens) parts.prefix = {first_special};
  parts.eod = first_special + 1;
  return parts;
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTiktokenFile(const std::string& path,
                                            const TiktokenOptions& options) {
  const std::string text = ReadWholeFile(path);
  try {
    return std::make_unique<BpeTokenizer>(text.starts_with('[') ? MegatronParts(text, options)
                                                                : Llama3Parts(text, options));
  } catch (const nlohmann::json::exception& error) {
    throw TokenizerError(path + ": " + error.what());
  } catch (const TokenizerError& error) {
    throw TokenizerError(path + ": " + error.what());
  }
}

}  // namespace muster::tokenizer
