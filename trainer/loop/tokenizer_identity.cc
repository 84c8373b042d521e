#include "trainer/loop/tokenizer_identity.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "trainer/data/python_json.h"

namespace muster::loop {
namespace {

namespace json = data::python_json;
using Entries = std::vector<std::pair<std::string, std::string>>;

constexpr char kClass[] = "megatron.core.tokenizers.text.text_tokenizer.MegatronTokenizerText";

// Python's str() of an optional text.
std::string OrNone(const std::string& text) {
  return json::Text(text.empty() ? "None" : text);
}

// Python's str() of an optional list.
std::string ListOrNone(const std::vector<std::string>& texts) {
  if (texts.empty()) return OrNone("");
  std::string list;
  for (const std::string& text : texts) {
    const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
    list += (list.empty() ? "" : ", ") + (quote + text + quote);
  }
  return json::Text("[" + list + "]");
}

std::string PythonBool(bool value) {
  return json::Text(value ? "True" : "False");
}

// The arguments that Megatron's build_tokenizer passes to the Hugging Face library.
void AddHuggingFace(const config::CommandLine& line, Entries& entries) {
  const bool special = !line.without_effect.contains("tokenizer-hf-no-include-special-tokens");
  entries.insert(entries.end(), {{"use_fast", PythonBool(true)},
                                 {"trust_remote_code", PythonBool(false)},
                                 {"include_special_tokens", PythonBool(special)},
                                 {"use_gigatoken", PythonBool(false)}});
}

}  // namespace

std::string TokenizerIdentity(const config::CommandLine& line) {
  const config::TrainConfig& c = line.config;
  const std::string& type = c.tokenizer_type;
  Entries entries = {{"class", json::Text(kClass)}};
  const auto path = [&](const std::string& text) {
    entries.emplace_back("tokenizer_path", text.empty() ? json::kNull : json::Text(text));
  };
  const std::pair<std::string, std::string> no_template = {"chat_template", OrNone("")};
  const std::string size = json::Text(fmt::format("{}", c.vocab_size));
  if (type == "HuggingFaceTokenizer") {
    path(c.tokenizer_model);
    entries.insert(entries.end(), {no_template,
                                   {"vocab_file", OrNone(c.vocab_file)},
                                   {"merges_file", OrNone(c.merge_file)},
                                   {"additional_special_tokens", json::Text("[]")}});
    AddHuggingFace(line, entries);
  } else if (type == "GPT2BPETokenizer") {
    path(type);
    entries.insert(entries.end(), {{"additional_special_tokens", json::Text("[]")},
                                   {"vocab_file", OrNone(c.vocab_file)},
                                   {"merges_file", OrNone(c.merge_file)}});
    AddHuggingFace(line, entries);
  } else if (type == "TikTokenizer") {
    path(c.tokenizer_model);
    entries.push_back(no_template);
    if (line.Given("tiktoken-pattern")) {
      entries.emplace_back("pattern", json::Text(c.tiktoken_pattern));
    }
    if (line.Given("vocab-size")) entries.emplace_back("vocab_size", size);
    entries.emplace_back("num_special_tokens",
                         json::Text(fmt::format("{}", c.tiktoken_num_special_tokens)));
    entries.emplace_back("special_tokens", OrNone(""));
  } else if (type.ends_with("SentencePieceTokenizer") || type == "Llama2Tokenizer") {
    path(c.tokenizer_model);
    entries.insert(entries.end(), {no_template,
                                   {"ignore_extra_whitespaces", PythonBool(true)},
                                   {"legacy", PythonBool(c.tokenizer_sentencepiece_legacy)},
                                   {"special_tokens", ListOrNone(c.tokenizer_special_tokens)}});
  } else {
    path(c.tokenizer_model);
    entries.emplace_back("vocab_size", size);
    entries.emplace_back("pad_id", json::Text("-1"));
  }
  return json::Dict(entries);
}

}  // namespace muster::loop
