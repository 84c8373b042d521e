#pragma once

#include <string>
#include <vector>

// The subcommands of muster-preprocess. Each returns the exit code, or throws UsageError, DataError
// or TokenizerError. Each ...Help() is the list of its flags.

namespace muster::tools {

// Text files to .bin/.idx: the default, with the options of Megatron's tools/preprocess_data.py.
int RunPreprocess(const std::vector<std::string>& words);
std::string PreprocessHelp();

// stdin to ids on stdout.
int RunTokenize(const std::vector<std::string>& words);
// Ids on stdin to text on stdout.
int RunDetokenize(const std::vector<std::string>& words);
std::string TokenizeHelp();

// Data sets one after the other in one, as Megatron's tools/merge_datasets.py.
int RunMerge(const std::vector<std::string>& words);
std::string MergeHelp();

// What a data set is, from its index.
int RunInspect(const std::vector<std::string>& words);
std::string InspectHelp();

// Every index entry and every token; exit code 65 when something is wrong.
int RunVerify(const std::vector<std::string>& words);
std::string VerifyHelp();

// Some documents as text.
int RunSample(const std::vector<std::string>& words);
std::string SampleHelp();

// How long the documents are, in the terminal and as SVG.
int RunStats(const std::vector<std::string>& words);
std::string StatsHelp();

}  // namespace muster::tools
