#include "trainer/tokenizer/tokenizer_json.h"

#include <filesystem>
#include <sstream>
#include <utility>

#include "trainer/tokenizer/hf_file.h"
#include "trainer/tokenizer/hf_loader.h"
#include "trainer/tokenizer/read_file.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr char kGpt2Eod[] = "<|endoftext|>";

std::unique_ptr<Tokenizer> Build(const HfFile& file, const HfConfig& config,
                                 const HfOptions& options) {
  return std::make_unique<BpeTokenizer>(HfLoader(file, config, options).Load());
}

HfConfig ReadConfig(const fs::path& path) {
  if (!fs::exists(path)) return {};
  const json config = ReadJsonFile(path);
  try {
    return LoadHfConfig(JsonView(config, ""));
  } catch (const TokenizerError& error) {
    throw TokenizerError(path.string() + ": " + error.what());
  }
}

}  // namespace

std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path, const HfOptions& options) {
  const fs::path file = fs::is_directory(path) ? fs::path(path) / "tokenizer.json" : fs::path(path);
  const HfFile content = ReadHfFile(file);
  const HfConfig config = ReadConfig(file.parent_path() / "tokenizer_config.json");
  try {
    return Build(content, config, options);
  } catch (const TokenizerError& error) {
    throw TokenizerError(file.string() + ": " + error.what());
  }
}

std::unique_ptr<Tokenizer> LoadGpt2Files(const std::string& vocab_path,
                                         const std::string& merges_path, const HfOptions& options) {
  HfFile file;
  const json vocab = ReadJsonFile(vocab_path);
  try {
    for (const auto& [token, id] : JsonView(vocab, "").Members()) {
      file.vocab.emplace_back(token, id.Integer());
    }
    std::istringstream merges(ReadWholeFile(merges_path));
    for (std::string line; std::getline(merges, line);) {
      if (line.starts_with("#version") || line.empty()) continue;
      file.merges.push_back(SplitMerge(line, file.merges.size()));
    }
    // What Hugging Face builds from these two files.
    file.rest = {{"model", {{"type", "BPE"}}},
                 {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}}};
    HfConfig config;
    config.eos = kGpt2Eod;
    if (vocab.contains(kGpt2Eod)) config.named = {{.content = kGpt2Eod, .special = true}};
    return Build(file, config, options);
  } catch (const TokenizerError& error) {
    throw TokenizerError(vocab_path + ", " + merges_path + ": " + error.what());
  }
}

}  // namespace muster::tokenizer
