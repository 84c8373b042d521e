#pragma once

#include <memory>
#include <string>

#include "trainer/tokenizer/tokenizer.h"

namespace muster::tokenizer {

struct HfOptions {
  // Put the tokens of the template post-processor (BOS) around every text.
  bool include_special_tokens = true;
  // Read special tokens that are written in a text as plain text.
  bool split_special_tokens = false;
};

// Hugging Face's tokenizer.json (byte-level BPE): `path` is the file, or a folder with it.
// tokenizer_config.json beside it names the end-of-document token. Throws TokenizerError with the
// file and the key that is wrong or not supported.
std::unique_ptr<Tokenizer> LoadTokenizerJson(const std::string& path, const HfOptions& options);

// GPT-2's vocab.json and merges.txt; EOD is <|endoftext|>.
std::unique_ptr<Tokenizer> LoadGpt2Files(const std::string& vocab_path,
                                         const std::string& merges_path, const HfOptions& options);

}  // namespace muster::tokenizer
