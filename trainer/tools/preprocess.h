#pragma once

#include <cstdint>
#include <string>

#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/encode_chunk.h"

namespace muster::tools {

struct PreprocessOptions {
  EncodeOptions encode;  // partition is set by Preprocess
  std::string output_prefix;
  int64_t workers = 1;
  int64_t log_interval = 1000;  // documents between progress lines on stderr
};

struct PreprocessResult {
  int64_t documents = 0;
  int64_t tokens = 0;
};

// Writes PREFIX_<key>_document.bin and .idx for each key. The output does not depend on the number
// of workers; memory does not grow with the input. Nothing appears under the final names unless all
// of it is good. Throws data::DataError, tokenizer::TokenizerError.
PreprocessResult Preprocess(const tokenizer::Tokenizer& tokenizer,
                            const PreprocessOptions& options);

}  // namespace muster::tools
