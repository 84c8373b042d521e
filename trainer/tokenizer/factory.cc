#include "trainer/tokenizer/factory.h"

#include <string>
#include <vector>

#include "common/suggest.h"
#include "trainer/tokenizer/byte_tokenizer.h"
#include "trainer/tokenizer/null_tokenizer.h"
#include "trainer/tokenizer/spm_tokenizer.h"
#include "trainer/tokenizer/tiktoken_file.h"
#include "trainer/tokenizer/tokenizer_json.h"

namespace muster::tokenizer {

namespace {

const std::vector<std::string>& TypeNames() {
  static const auto* const names = new std::vector<std::string>{
      "HuggingFaceTokenizer",      "TikTokenizer",    "SentencePieceTokenizer",
      "GPTSentencePieceTokenizer", "Llama2Tokenizer", "GPT2BPETokenizer",
      "ByteLevelTokenizer",        "NullTokenizer"};
  return *names;
}

const std::string& Required(const std::string& value, const std::string& what) {
  if (value.empty()) throw TokenizerError(what);
  return value;
}

bool IsSentencePiece(const std::string& type) {
  return type == "SentencePieceTokenizer" || type == "GPTSentencePieceTokenizer" ||
         type == "Llama2Tokenizer";
}

void CheckSpecialTokens(const TokenizerOptions& options) {
  if (options.special_tokens.empty() && !options.sentencepiece_legacy) return;
  const std::string flag = options.special_tokens.empty() ? "--tokenizer-sentencepiece-legacy"
                                                          : "--tokenizer-special-tokens";
  if (!IsSentencePiece(options.type)) {
    throw TokenizerError(flag + " goes with SentencePiece models, not with --tokenizer-type " +
                         options.type +
                         ": leave it out, or add the tokens to the tokenizer's own file");
  }
}

}  // namespace

std::unique_ptr<Tokenizer> MakeTokenizer(const TokenizerOptions& options,
                                         const OpenSpmEngine& open_engine) {
  CheckSpecialTokens(options);
  const HfOptions hf{options.hf_special_tokens, options.split_special_tokens};
  if (options.type == "HuggingFaceTokenizer") {
    return LoadTokenizerJson(Required(options.model,
                                      "HuggingFaceTokenizer needs --tokenizer-model: a "
                                      "tokenizer.json, or the folder with it"),
                             hf);
  }
  if (options.type == "GPT2BPETokenizer") {
    return LoadGpt2Files(
        Required(options.vocab_file, "GPT2BPETokenizer needs --vocab-file (vocab.json)"),
        Required(options.merge_file, "GPT2BPETokenizer needs --merge-file (merges.txt)"), hf);
  }
  if (options.type == "TikTokenizer") {
    TiktokenOptions tiktoken;
    tiktoken.pattern = options.tiktoken_pattern;
    if (options.vocab_size > 0) tiktoken.vocab_size = options.vocab_size;
    tiktoken.num_special_tokens = options.tiktoken_num_special_tokens;
    tiktoken.include_special_tokens = options.hf_special_tokens;
    tiktoken.split_special_tokens = options.split_special_tokens;
    return LoadTiktokenFile(
        Required(options.model,
                 "TikTokenizer needs --tokenizer-model: Megatron's JSON vocabulary, or Llama 3's "
                 "tokenizer.model"),
        tiktoken);
  }
  if (IsSentencePiece(options.type)) {
    return LoadSpm(
        Required(options.model, options.type + " needs --tokenizer-model: a .model file "
                                               "of SentencePiece"),
        {options.sentencepiece_legacy, options.special_tokens, options.sentencepiece_keep_spaces},
        open_engine);
  }
  if (options.type == "ByteLevelTokenizer") {
    return std::make_unique<ByteTokenizer>(options.vocab_size > 0 ? options.vocab_size
                                                                  : ByteTokenizer::kVocabSize);
  }
  if (options.type == "NullTokenizer") return std::make_unique<NullTokenizer>(options.vocab_size);
  std::string known;
  for (const std::string& name : TypeNames()) known += (known.empty() ? "" : ", ") + name;
  throw TokenizerError("--tokenizer-type '" + options.type + "' is none of " + known +
                       DidYouMean(options.type, TypeNames()));
}

}  // namespace muster::tokenizer
