#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/tokenizer/spm_engine.h"
#include "trainer/tokenizer/spm_file.h"
#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

struct SpmOptions {
  // `--tokenizer-sentencepiece-legacy`: special tokens may be added, and are found in texts.
  bool legacy = false;
  std::vector<std::string> special_tokens;  // `--tokenizer-special-tokens`
  // `--no-tokenizer-sentencepiece-ignore-extra-whitespaces`: runs of spaces are kept where the
  // model would shorten them.
  bool keep_spaces = false;
};

// Megatron's SentencePieceTokenizer, GPTSentencePieceTokenizer and Llama2Tokenizer, which are one:
// the ids of the library, without BOS; EOD is the model's EOS.
class SpmTokenizer : public Tokenizer {
 public:
  // `open_engine` empty: only sizes and special ids can be asked for. Throws TokenizerError.
  SpmTokenizer(const std::string& model, const SpmOptions& options,
               const OpenSpmEngine& open_engine);

  std::unique_ptr<Encoder> NewEncoder(const EncoderOptions& options) const override;
  std::string Decode(std::span<const int32_t> ids) const override;
  std::optional<int32_t> eod() const override { return eod_; }
  std::optional<int32_t> pad() const override { return pad_; }
  int64_t vocab_size() const override { return vocab_size_; }

 private:
  class SpmEncoder;

  struct Special {
    std::string text;
    int32_t id;
  };

  void AddSpecials(const SpmFile& file, const std::vector<std::string>& tokens);
  const SpmEngine& engine() const;
  bool IsSpecial(int32_t id) const { return special_text_.contains(id); }
  std::string DecodePlain(const std::vector<int32_t>& ids) const;

  const SpmOptions options_;
  std::unique_ptr<SpmEngine> engine_;
  int64_t vocab_size_ = 0;
  int64_t piece_count_ = 0;
  int32_t separator_id_ = 0;  // of the piece for a space
  std::optional<int32_t> eod_;
  std::optional<int32_t> pad_;
  bool keep_spaces_ = false;
  bool can_cut_ = false;           // SpmFile::CanCutAtSpaces, and nothing hinders it
  std::vector<Special> specials_;  // in the order given
  std::unordered_map<int32_t, std::string> special_text_;
};

// Loads a file. Throws TokenizerError with its path.
std::unique_ptr<Tokenizer> LoadSpm(const std::string& path, const SpmOptions& options,
                                   const OpenSpmEngine& open_engine);

}  // namespace muster::tokenizer
