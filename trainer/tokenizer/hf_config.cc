#include "trainer/tokenizer/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

namespace muster::tokenizer {
namespace {

// A longer one is a damaged file; and text is compared with it at every character.
constexpr size_t kLongestToken = 4096;

// "text" or {"content": "text", ...}.
std::optional<AddedToken> ReadNamed(const JsonView& root, const std::string& key) {
  const auto value = root.Find(key);
  if (!value) return std::nullopt;
  AddedToken token;
  if (value->is_object()) {
    token = ReadAddedToken(*value);
  } else {
    token.content = value->Text();
  }
  token.special = true;
  return token;
}

std::optional<std::string> ContentOf(const std::optional<AddedToken>& token) {
  return token ? std::optional<std::string>(token->content) : std::nullopt;
}

}  // namespace

AddedToken ReadAddedToken(const JsonView& entry) {
  AddedToken token;
  token.content = entry.At("content").Text();
  if (token.content.size() > kLongestToken) {
    entry.At("content").Fail(fmt::format("is longer than {} bytes", kLongestToken));
  }
  token.special = entry.BoolOr("special", false);
  token.single_word = entry.BoolOr("single_word", false);
  token.lstrip = entry.BoolOr("lstrip", false);
  token.rstrip = entry.BoolOr("rstrip", false);
  token.normalized = entry.BoolOr("normalized", !token.special);
  return token;
}

HfConfig LoadHfConfig(const JsonView& root) {
  HfConfig config;
  const auto eos = ReadNamed(root, "eos_token");
  config.eos = ContentOf(eos ? eos : ReadNamed(root, "sep_token"));
  config.pad = ContentOf(ReadNamed(root, "pad_token"));
  config.split_special_tokens = root.BoolOr("split_special_tokens", false);
  if (const auto decoder = root.Find("added_tokens_decoder")) {
    std::map<int64_t, AddedToken> by_id;
    for (const auto& [key, entry] : decoder->Members()) {
      int64_t id = -1;
      const char* end = key.data() + key.size();
      if (std::from_chars(key.data(), end, id).ptr != end || id < 0) {
        entry.Fail("'" + key + "' is not the id of a token");
      }
      by_id[id] = ReadAddedToken(entry);
    }
    for (const auto& [id, token] : by_id) config.added.push_back(token);
  }
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    const auto token = ReadNamed(root, key);
    if (token) config.named.push_back(*token);
  }
  const auto is_pad = [&](const AddedToken& token) { return token.content == config.pad; };
  if (std::count_if(config.named.begin(), config.named.end(), is_pad) > 1) config.pad.reset();
  return config;
}

}  // namespace muster::tokenizer
