#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/tokenizer/added_tokens.h"
#include "trainer/tokenizer/bpe_model.h"
#include "trainer/tokenizer/splitter.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

// What a byte-level BPE tokenizer is made of; loaders fill it.
struct BpeParts {
  BpeModel model;
  std::vector<std::unique_ptr<Splitter>> splitters;  // each cuts the pieces of the one before
  bool add_prefix_space = false;  // before each stretch of plain text that has none
  std::vector<AddedToken> added;  // looked for in the text
  std::vector<int32_t> prefix;    // ids around every text
  std::vector<int32_t> suffix;
  std::vector<std::string> token_text;  // by id, bytes; what Decode prints
  std::vector<bool> has_token;          // by id
  std::optional<int32_t> eod;
  int64_t vocab_size = 0;
};

// Byte-level BPE: GPT-2, Llama 3, Qwen and their kin.
class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts);

  std::unique_ptr<Encoder> NewEncoder() const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> eod() const override { return parts_.eod; }
  int64_t vocab_size() const override { return parts_.vocab_size; }

 private:
  class BpeTextEncoder;

  BpeParts parts_;
  AddedTokenFinder plain_;       // tokens looked for first
  AddedTokenFinder normalized_;  // and in what is left
};

}  // namespace muster::tokenizer
