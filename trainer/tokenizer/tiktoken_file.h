#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

struct TiktokenOptions {
  // Megatron's JSON form only.
  std::string pattern = "v2";         // `--tiktoken-pattern`: v1 or v2
  int64_t vocab_size = 131072;        // `--vocab-size`, special tokens included
  int64_t num_special_tokens = 1000;  // `--tiktoken-num-special-tokens`: they come first
  // Llama 3's tokenizer.model only: BOS before every text.
  bool include_special_tokens = true;
  // Read special tokens that are written in a text as plain text.
  bool split_special_tokens = false;
};

// A tiktoken vocabulary: Megatron's TikTokenizer JSON (a list of {"rank", "token_bytes",
// "token_str"}), or Llama 3's tokenizer.model (lines "base64 rank"). Throws TokenizerError with the
// file and the entry that is wrong.
std::unique_ptr<Tokenizer> LoadTiktokenFile(const std::string& path,
                                            const TiktokenOptions& options);

}  // namespace muster::tokenizer
