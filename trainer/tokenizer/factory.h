#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

// Megatron's tokenizer flags.
struct TokenizerOptions {
  std::string type;                     // `--tokenizer-type`
  std::string model;                    // `--tokenizer-model`
  int64_t vocab_size = 0;               // `--vocab-size`; 0: not given
  bool hf_special_tokens = true;        // `--tokenizer-hf-no-include-special-tokens` clears it
  std::string tiktoken_pattern = "v2";  // `--tiktoken-pattern`
  int64_t tiktoken_num_special_tokens = 1000;  // `--tiktoken-num-special-tokens`
  std::string vocab_file;                      // `--vocab-file`
  std::string merge_file;                      // `--merge-file`
  bool split_special_tokens = false;           // `--split-special-tokens`
};

// Throws TokenizerError: unknown type (with the nearest name), a flag that is missing, a file that
// can't be used.
std::unique_ptr<Tokenizer> MakeTokenizer(const TokenizerOptions& options);

}  // namespace muster::tokenizer
