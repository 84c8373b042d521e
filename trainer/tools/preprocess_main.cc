// muster-preprocess: text to Megatron's .bin/.idx, and tools for these files and for tokenizers.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "common/suggest.h"
#include "common/version.h"
#include "trainer/data/data_error.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/flags.h"

namespace muster::tools {
namespace {

struct Command {
  const char* name;
  const char* usage;
  const char* purpose;
  int (*run)(const std::vector<std::string>& words);
  std::string (*help)();
};

constexpr Command kPreprocess = {
    "", "--input FILE... --output-prefix PREFIX --tokenizer-type TYPE --tokenizer-model PATH ...",
    "text files to the .bin/.idx that trainers read, as Megatron's tools/preprocess_data.py",
    RunPreprocess, PreprocessHelp};

constexpr Command kCommands[] = {
    {"tokenize", "--tokenizer-type TYPE --tokenizer-model PATH < text", "prints ids", RunTokenize,
     TokenizeHelp},
    {"detokenize", "--tokenizer-type TYPE --tokenizer-model PATH < ids", "prints text",
     RunDetokenize, TokenizeHelp},
    {"merge", "--input FOLDER|PREFIX... --output-prefix PREFIX",
     "one data set from several, as Megatron's tools/merge_datasets.py", RunMerge, MergeHelp},
    {"inspect", "PREFIX...", "what a data set is", RunInspect, InspectHelp},
    {"verify", "PREFIX... [--vocab-size V | --tokenizer-type TYPE ...]",
     "checks every entry and every token", RunVerify, VerifyHelp},
    {"sample", "N PREFIX --tokenizer-type TYPE ...", "prints N documents as text", RunSample,
     SampleHelp},
    {"stats", "PREFIX [--svg FILE]", "how long the documents are", RunStats, StatsHelp},
};

void PrintHelp(const Command& command) {
  const std::string space = command.name[0] == '\0' ? "" : " ";
  fmt::print("muster-preprocess{}{}: {}\n\n  muster-preprocess{}{} {}\n\n{}", space, command.name,
             command.purpose, space, command.name, command.usage, command.help());
}

void PrintAllHelp() {
  PrintHelp(kPreprocess);
  fmt::print("\nSubcommands (each has --help):\n");
  for (const Command& command : kCommands) {
    fmt::print("  {:<12}{}\n", command.name, command.purpose);
  }
}

bool Has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

int Run(const std::vector<std::string>& words) {
  if (Has(words, "--version")) {
    fmt::print("muster-preprocess {}\n", kVersion);
    return 0;
  }
  const bool help = Has(words, "--help") || Has(words, "-h");
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.emplace_back(command.name);
    if (words.empty() || words[0] != command.name) continue;
    if (!help) return command.run({words.begin() + 1, words.end()});
    PrintHelp(command);
    return 0;
  }
  if (help) {
    PrintAllHelp();
    return 0;
  }
  if (!words.empty() && !words[0].starts_with("-")) {
    const std::string hint = DidYouMean(words[0], names);
    throw UsageError("no subcommand '" + words[0] + "'" + (hint.empty() ? "; see --help" : hint));
  }
  return RunPreprocess(words);
}

// The buffers of ordinary chunks are used again; those of very long lines go back to the system, so
// that peak memory is what is in use.
void BoundHeap() {
  constexpr int kLargeBlock = 8 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargeBlock);
}

}  // namespace
}  // namespace muster::tools

int main(int argc, char** argv) {
  using muster::data::kDataExitCode;
  using muster::tools::kUsageExitCode;
  muster::tools::BoundHeap();
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
