#include "trainer/tokenizer/tokenizer_json.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "trainer/tokenizer/hf_file.h"
#include "trainer/tokenizer/json_bpe_loader.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kGpt2Eod[] = "<|endoftext|>";

// "eos_token": "text" or {"content": "text"}.
std::optional<std::string> EosToken(const fs::path& config_path) {
  if (!fs::exists(config_path)) return std::nullopt;
  const json config = ReadJsonFile(config_path);
  if (!config.contains("eos_token") || config["eos_token"].is_null()) return std::nullopt;
  const json& eos = config["eos_token"];
  return (eos.is_object() ? eos.at("content") : eos).get<std::string>();
}

// `eos_from` says where the name of the EOD stands.
std::unique_ptr<Tokenizer> Build(const HfFile& file, const HfOptions& options,
                                 const std::optional<std::string>& eos,
                                 const std::string& eos_from) {
  JsonBpeLoader loader(file, options);
  BpeParts parts = loader.Load();
  if (eos) {
    parts.eod = loader.IdOf(*eos);
    if (!parts.eod) {
      throw TokenizerError("eos_token '" + *eos + "' of " + eos_from + " is not in the vocabulary");
    }
  }
  return std::make_unique<BpeTokenizer>(std::move(parts));
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path, const HfOptions& options) {
  const fs::path file = fs::is_directory(path) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const HfFile content = ReadHfFile(file);
  try {
    const fs::path config_path = file.parent_path() / "tokenizer_config.json";
    return Build(content, options, EosToken(config_path), config_path);
  } catch (const json::exception& error) {
    throw TokenizerError(file.string() + ": " + error.what());
  } catch (const TokenizerError& error) {
    throw TokenizerError(file.string() + ": " + error.what());
  }
}

std::unique_ptr<Tokenizer> LoadGpt2Files(const std::string& vocab_path,
                                         const std::string& merges_path, const HfOptions& options) {
  HfFile file;
  const json vocab = ReadJsonFile(vocab_path);
  try {
    for (const auto& [token, id] : vocab.items()) file.vocab.emplace_back(token, id);
    std::ifstream merges(merges_path);
    if (!merges) throw TokenizerError("open " + merges_path + ": no such readable file");
    for (std::string line; std::getline(merges, line);) {
      if (line.starts_with("#version") || line.empty()) continue;
      file.merges.push_back(SplitMerge(line, file.merges.size()));
    }
    // What Hugging Face builds from these two files.
    file.rest = {{"model", {{"type", "BPE"}}},
                 {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
    if (vocab.contains(kGpt2Eod)) {
      file.rest["added_tokens"] = {
          {{"id", vocab[kGpt2Eod]}, {"content", kGpt2Eod}, {"special", true}}};
    }
    return Build(file, options, kGpt2Eod, "GPT-2");
  } catch (const json::exception& error) {
    throw TokenizerError(vocab_path + ": " + error.what());
  } catch (const TokenizerError& error) {
    throw TokenizerError(vocab_path + ", " + merges_path + ": " + error.what());
  }
}

}  // namespace muster::tokenizer
