// muster-preprocess: text to Megatron's .bin/.idx, and a try of a tokenizer.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "common/version.h"
#include "trainer/data/data_error.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/flags.h"

namespace muster::tools {
namespace {

constexpr char kUsage[] =
    R"(muster-preprocess: text files to the .bin/.idx that trainers read, as Megatron's tools/preprocess_data.py.

  muster-preprocess --input FILE --output-prefix PREFIX --tokenizer-type TYPE --tokenizer-model PATH [--append-eod] ...
  muster-preprocess tokenize --tokenizer-type TYPE --tokenizer-model PATH < text      prints ids
  muster-preprocess detokenize --tokenizer-type TYPE --tokenizer-model PATH < ids     prints text

)";

int Run(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--version") {
      fmt::print("muster-preprocess {}\n", kVersion);
      return 0;
    }
    if (word == "--help" || word == "-h") {
      fmt::print("{}Flags:\n{}\ntokenize and detokenize:\n{}", kUsage, PreprocessHelp(),
                 TokenizeHelp());
      return 0;
    }
  }
  if (!words.empty() && words[0] == "tokenize")
    return RunTokenize({words.begin() + 1, words.end()});
  if (!words.empty() && words[0] == "detokenize") {
    return RunDetokenize({words.begin() + 1, words.end()});
  }
  return RunPreprocess(words);
}

}  // namespace
}  // namespace muster::tools

int main(int argc, char** argv) {
  using muster::data::kDataExitCode;
  using muster::tools::kUsageExitCode;
  try {
    const int code = muster::tools::Run({argv + 1, argv + argc});
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw muster::data::DataError("stdout can't be written: is its disk full?");
    }
    return code;
  } catch (const muster::tools::UsageError& error) {
    fmt::print(stderr, "muster-preprocess: {}\n", error.what());
    return kUsageExitCode;
  } catch (const std::exception& error) {
    fmt::print(stderr, "muster-preprocess: {}\n", error.what());
    return kDataExitCode;
  }
}
