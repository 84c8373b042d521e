#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/tokenizer/added_tokens.h"
#include "trainer/tokenizer/bpe_model.h"
#include "trainer/tokenizer/normalizer.h"
#include "trainer/tokenizer/pre_step.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

// What a BPE tokenizer is made of; loaders fill it. A text goes through it from top to bottom.
struct BpeParts {
  std::vector<AddedToken> added;           // looked for in the text
  std::unique_ptr<Normalizer> normalizer;  // of what lies between them; null: none
  std::vector<PreStep> steps;
  BpeModel model;
  std::vector<int32_t> prefix;  // ids around every text
  std::vector<int32_t> suffix;
  std::vector<std::string> token_text;  // by id, bytes; what Decode prints
  std::vector<bool> has_token;          // by id
  std::vector<bool> is_byte;            // by id, shorter or empty where none follows: one byte
  bool strip_space = false;             // Decode leaves out a space at the start
  bool strip_first_token = false;       // and all spaces of the first token
  std::optional<int32_t> eod;
  std::optional<int32_t> pad;
  int64_t vocab_size = 0;
};

// BPE over bytes (GPT-2, Llama 3, Qwen and their kin) or over characters (Llama 2, Mistral).
class BpeTokenizer : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeParts parts);

  std::unique_ptr<Encoder> NewEncoder(const EncoderOptions& options) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> eod() const override { return parts_.eod; }
  std::optional<int32_t> pad() const override { return parts_.pad; }
  int64_t vocab_size() const override { return parts_.vocab_size; }

 private:
  class BpeTextEncoder;

  BpeParts parts_;
  size_t rewriting_factor_;      // memory for each byte of a text; 0: it is not rewritten
  AddedTokenFinder plain_;       // tokens looked for first
  AddedTokenFinder normalized_;  // and in what is left
};

}  // namespace muster::tokenizer
