#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "trainer/data/data_error.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/indexed_writer.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/dataset_facts.h"
#include "trainer/tools/flags.h"

namespace muster::tools {
namespace {

namespace fs = std::filesystem;
using data::DataError;

struct Arguments {
  std::vector<std::string> input;
  std::string output_prefix;
  bool multimodal = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.List("--input", &args->input,
             "folders (all data sets in them, in the order of their names) and prefixes");
  flags.Text("--output-prefix", &args->output_prefix, "output: PREFIX.bin and PREFIX.idx");
  flags.Switch("--multimodal", &args->multimodal, "the data sets have modes: keep them");
  return flags;
}

// Megatron's rule: each file of the folder belongs to a pair of .bin and .idx.
std::set<std::string> PrefixesIn(const fs::path& folder) {
  std::set<std::string> prefixes;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    fs::path path = entry.path();
    const std::string suffix = path.extension() == ".idx" ? ".bin" : ".idx";
    if (!fs::is_regular_file(fs::path(path).replace_extension(suffix))) {
      throw DataError(
          fmt::format("{} has no {} beside it: a folder to merge holds pairs of .bin "
                      "and .idx, and nothing else; or name prefixes",
                      path.string(), suffix));
    }
    prefixes.insert(path.replace_extension().string());
  }
  return prefixes;
}

std::vector<std::string> Prefixes(const std::vector<std::string>& input) {
  std::vector<std::string> prefixes;
  for (const std::string& word : input) {
    if (!fs::is_directory(word)) {
      prefixes.push_back(DatasetPrefix(word));
      continue;
    }
    const std::set<std::string> found = PrefixesIn(word);
    if (found.empty()) throw DataError("--input " + word + ": no .bin and .idx in this folder");
    prefixes.insert(prefixes.end(), found.begin(), found.end());
  }
  return prefixes;
}

void Check(const Arguments& args) {
  if (args.input.empty()) throw UsageError("--input FOLDER is missing; see --help");
  if (args.output_prefix.empty()) throw UsageError("--output-prefix PREFIX is missing; see --help");
}

}  // namespace

int RunMerge(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  Check(args);
  const std::vector<std::string> prefixes = Prefixes(args.input);
  std::unique_ptr<data::IndexedWriter> writer;
  for (const std::string& prefix : prefixes) {
    if (fs::weakly_canonical(prefix) == fs::weakly_canonical(args.output_prefix)) {
      throw DataError("--output-prefix " + args.output_prefix + " is one of the inputs");
    }
    const data::IndexedDataset dataset(prefix);
    if (!writer) {
      writer = std::make_unique<data::IndexedWriter>(args.output_prefix, dataset.token_type());
    }
    writer->Append(dataset, args.multimodal);
  }
  writer->Finish();
  fmt::print("{} data sets, {} documents, {} sequences:\n{}\n", prefixes.size(),
             writer->num_documents(), writer->num_sequences(), args.output_prefix);
  return 0;
}

std::string MergeHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
