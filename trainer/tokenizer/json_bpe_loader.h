#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trainer/tokenizer/bpe_tokenizer.h"
#include "trainer/tokenizer/hf_file.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::tokenizer {

// One reading of tokenizer.json into the parts of a tokenizer. What it does not know it refuses by
// name: TokenizerError without the path, or a json::exception for a value of the wrong kind.
class JsonBpeLoader {
 public:
  JsonBpeLoader(const HfFile& file, const HfOptions& options)
      : file_(file), root_(file.rest), options_(options) {}

  BpeParts Load();

  // Of a token as the file writes it; after Load.
  std::optional<int32_t> IdOf(const std::string& token) const;

 private:
  using json = nlohmann::json;

  void RefuseNormalizer(const json& normalizer) const;
  void LoadModel(const json& model);
  void LoadMerges();
  void LoadAddedTokens();
  void AddPreTokenizer(const json& step);
  void AddSplit(const json& step);
  void AddRegex(const std::string& pattern, bool keep_gaps);
  void AddPostProcessor(const json& processor);
  void AddTemplate(const json& processor);

  void SetText(int32_t id, std::string text);
  int32_t MergeId(const std::string& token, uint32_t rank) const;

  const HfFile& file_;
  const json& root_;
  const HfOptions options_;
  BpeParts parts_;
  bool byte_level_ = false;
  std::unordered_map<std::string, int32_t> ids_;
};

}  // namespace muster::tokenizer
