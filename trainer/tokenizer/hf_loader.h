#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "trainer/tokenizer/bpe_tokenizer.h"
#include "trainer/tokenizer/hf_config.h"
#include "trainer/tokenizer/hf_file.h"
#include "trainer/tokenizer/json_view.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::tokenizer {

// One reading of tokenizer.json (and tokenizer_config.json) into the parts of a tokenizer. What is
// not known is refused: TokenizerError with the place in the file, without the path.
class HfLoader {
 public:
  HfLoader(const HfFile& file, const HfConfig& config, const HfOptions& options)
      : file_(file), root_(file.rest, ""), config_(config), options_(options) {}

  BpeParts Load();

 private:
  void LoadVocabulary(const JsonView& model);
  void LoadMerges();
  void LoadModelOptions(const JsonView& model);
  void LoadAddedTokens();
  void LoadSurround();
  void LoadTexts();
  // Words that no merge can join are cut apart: a long text becomes many short words.
  void CutAtMarkers();

  void AddToken(AddedToken token);
  int32_t NextId() const;
  std::optional<int32_t> IdOf(const std::string& token) const;
  // Of a token that tokenizer_config.json names.
  std::optional<int32_t> NamedId(const std::optional<std::string>& token, const char* key) const;
  int32_t MergeId(const std::string& token, uint32_t rank) const;

  const HfFile& file_;
  const JsonView root_;
  const HfConfig& config_;
  const HfOptions options_;
  BpeParts parts_;
  bool byte_level_ = false;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<std::string, size_t> added_;  // content -> place in parts_.added
  size_t model_size_ = 0;                          // tokens of the model alone
  int32_t last_added_id_ = -1;                     // the highest id of an added token
};

}  // namespace muster::tokenizer
