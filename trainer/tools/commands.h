#pragma once

#include <string>
#include <vector>

// The subcommands of muster-preprocess. Each returns the exit code, or throws UsageError, DataError
// or TokenizerError.

namespace muster::tools {

// Text files to .bin/.idx: the default, with the options of Megatron's tools/preprocess_data.py.
int RunPreprocess(const std::vector<std::string>& words);

// stdin to ids on stdout.
int RunTokenize(const std::vector<std::string>& words);

// Ids on stdin to text on stdout.
int RunDetokenize(const std::vector<std::string>& words);

std::string PreprocessHelp();
std::string TokenizeHelp();

}  // namespace muster::tools
