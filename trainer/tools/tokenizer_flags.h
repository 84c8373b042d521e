#pragma once

#include "trainer/tokenizer/factory.h"
#include "trainer/tools/flags.h"

namespace muster::tools {

// Adds Megatron's tokenizer flags.
inline void AddTokenizerFlags(Flags& flags, tokenizer::TokenizerOptions* options,
                              bool* no_special_tokens) {
  flags.Text("--tokenizer-type", &options->type, "HuggingFaceTokenizer or NullTokenizer");
  flags.Text("--tokenizer-model", &options->model, "tokenizer.json, or the folder with it");
  flags.Integer("--vocab-size", &options->vocab_size, 1, "for NullTokenizer");
  flags.Switch("--tokenizer-hf-no-include-special-tokens", no_special_tokens,
               "no BOS (and whatever else the tokenizer puts) around a text");
  flags.Switch("--split-special-tokens", &options->split_special_tokens,
               "special tokens written in a text are plain text");
}

}  // namespace muster::tools
