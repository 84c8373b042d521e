#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/tokenizer/added_tokens.h"
#include "trainer/tokenizer/json_view.h"

namespace muster::tokenizer {

// What tokenizer_config.json adds to tokenizer.json, as Hugging Face's transformers 5 reads it for
// its general tokenizer class: add_bos_token and add_eos_token do not count there, the
// post-processor of tokenizer.json does.
struct HfConfig {
  std::optional<std::string> eos;
  std::optional<std::string> pad;  // unless it is named for something else, too
  bool split_special_tokens = false;
  std::vector<AddedToken> added;  // added_tokens_decoder, by id; ids are given on adding
  std::vector<AddedToken> named;  // bos_token and its kin: added unless there
};

// Throws TokenizerError with the place of what is wrong.
HfConfig LoadHfConfig(const JsonView& root);

// {"content": "...", "special": ..., ...}, without the id.
AddedToken ReadAddedToken(const JsonView& entry);

}  // namespace muster::tokenizer
