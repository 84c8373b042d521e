#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/tokenizer/spm_engine.h"
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
  std::vector<std::string> special_tokens;     // `--tokenizer-special-tokens`
  bool sentencepiece_legacy = false;           // `--tokenizer-sentencepiece-legacy`
  // `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`
  bool sentencepiece_keep_spaces = false;
};

// Throws TokenizerError: unknown type (with the nearest name), a flag that is missing, a file that
// can't be used. `open_engine`: what encodes with SentencePiece models (OpenSentencePiece); without
// it such a tokenizer only knows its sizes and special ids.
std::unique_ptr<Tokenizer> MakeTokenizer(const TokenizerOptions& options,
                                         const OpenSpmEngine& open_engine = {});

}  // namespace muster::tokenizer
