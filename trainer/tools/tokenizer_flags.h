#pragma once

#include <memory>

#include "trainer/tokenizer/factory.h"
#include "trainer/tokenizer/sentencepiece_engine.h"
#include "trainer/tools/flags.h"

namespace muster::tools {

// Adds Megatron's tokenizer flags.
inline void AddTokenizerFlags(Flags& flags, tokenizer::TokenizerOptions* options,
                              bool* no_special_tokens) {
  flags.Text("--tokenizer-type", &options->type,
             "HuggingFaceTokenizer, TikTokenizer, SentencePieceTokenizer, Llama2Tokenizer, "
             "GPT2BPETokenizer, ByteLevelTokenizer, NullTokenizer");
  flags.Text("--tokenizer-model", &options->model,
             "tokenizer.json or the folder with it; the vocabulary of a TikTokenizer; a .model");
  flags.Integer("--vocab-size", &options->vocab_size, 1,
                "for NullTokenizer, TikTokenizer and ByteLevelTokenizer");
  flags.Text("--vocab-file", &options->vocab_file, "GPT2BPETokenizer: vocab.json");
  flags.Text("--merge-file", &options->merge_file, "GPT2BPETokenizer: merges.txt");
  flags.Text("--tiktoken-pattern", &options->tiktoken_pattern, "TikTokenizer: v1 or v2 (default)");
  flags.Integer("--tiktoken-num-special-tokens", &options->tiktoken_num_special_tokens, 1,
                "TikTokenizer: default 1000");
  flags.Switch("--tokenizer-hf-no-include-special-tokens", no_special_tokens,
               "no BOS (and whatever else the tokenizer puts) around a text");
  flags.Switch("--split-special-tokens", &options->split_special_tokens,
               "special tokens written in a text are plain text");
  flags.List("--tokenizer-special-tokens", &options->special_tokens,
             "tokens to add to a SentencePiece model (with --tokenizer-sentencepiece-legacy)");
  flags.Switch("--tokenizer-sentencepiece-legacy", &options->sentencepiece_legacy,
               "SentencePiece models: look for added special tokens in a text");
  flags.Switch("--no-tokenizer-sentencepiece-ignore-extra-whitespaces",
               &options->sentencepiece_keep_spaces,
               "SentencePiece models: keep runs of spaces that the model would shorten");
  for (const char* name : {"--make-vocab-size-divisible-by", "--tensor-model-parallel-size"}) {
    flags.NoEffect(name, true, "taken, but ids and files do not depend on it");
  }
  flags.NoEffect("--trust-remote-code", false, "taken, but no code of a tokenizer is run");
  flags.Refused("--vocab-extra-ids", "is not understood: leave it out; T5's tokens are not added");
  flags.Refused("--tiktoken-special-tokens",
                "is not understood: leave it out; a TikTokenizer has Megatron's default ones");
  flags.Refused("--legacy-tokenizer",
                "is not understood: leave it out; ids are those of Megatron's present classes");
}

// With the SentencePiece library.
inline std::unique_ptr<tokenizer::Tokenizer> OpenTokenizer(
    const tokenizer::TokenizerOptions& options) {
  return tokenizer::MakeTokenizer(options, tokenizer::OpenSentencePiece);
}

}  // namespace muster::tools
