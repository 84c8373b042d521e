#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/encode_chunk.h"
#include "trainer/tools/output_set.h"
#include "trainer/tools/progress.h"
#include "trainer/tools/resume_state.h"

namespace muster::tools {

struct PreprocessOptions {
  EncodeOptions encode;  // the rest, from token_type to threads, is set by Preprocess
  OutputNames output;    // keys and partitions are those of `encode`
  bool keep_sequential = false;
  int64_t workers = 1;
  ProgressStyle progress = ProgressStyle::kLines;
  int64_t log_interval = 1000;
  bool resume = false;
  RunIdentity identity;
  std::chrono::milliseconds save_interval{10000};  // between notes of how far the run is
};

struct PreprocessResult {
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t skipped = 0;
  bool resumed = false;
};

// Writes the files of `options.output`. The output does not depend on the number of workers, nor on
// where a run was interrupted and resumed; memory grows neither with the input nor, beyond what a
// tokenizer needs for a thread, with the workers. Nothing appears under the final names unless all
// of it is good. Throws data::DataError, tokenizer::TokenizerError.
PreprocessResult Preprocess(const tokenizer::Tokenizer& tokenizer,
                            const PreprocessOptions& options);

}  // namespace muster::tools
