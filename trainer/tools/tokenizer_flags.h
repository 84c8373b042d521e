#pragma once

#include "trainer/tokenizer/factory.h"
#include "trainer/tools/flags.h"

namespace muster::tools {

// Adds Megatron's tokenizer flags.
inline void AddTokenizerFlags(Flags& flags, tokenizer::TokenizerOptions* options,
                              bool* no_special_tokens) {
  flags.Text("--tokenizer-type", &options->type,
             "HuggingFaceTokenizer, TikTokenizer, GPT2BPETokenizer, NullTokenizer");
  flags.Text("--tokenizer-model", &options->model,
             "tokenizer.json or the folder with it; for TikTokenizer its vocabulary");
  flags.Integer("--vocab-size", &options->vocab_size, 1, "for NullTokenizer and TikTokenizer");
  flags.Text("--vocab-file", &options->vocab_file, "GPT2BPETokenizer: vocab.json");
  flags.Text("--merge-file", &options->merge_file, "GPT2BPETokenizer: merges.txt");
  flags.Text("--tiktoken-pattern", &options->tiktoken_pattern, "TikTokenizer: v1 or v2 (default)");
  flags.Integer("--tiktoken-num-special-tokens", &options->tiktoken_num_special_tokens, 1,
                "TikTokenizer: default 1000");
  flags.Switch("--tokenizer-hf-no-include-special-tokens", no_special_tokens,
               "no BOS (and whatever else the tokenizer puts) around a text");
  flags.Switch("--split-special-tokens", &options->split_special_tokens,
               "special tokens written in a text are plain text");
}

}  // namespace muster::tools
