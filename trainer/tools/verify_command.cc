#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/data/data_error.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/dataset_check.h"
#include "trainer/tools/dataset_facts.h"
#include "trainer/tools/printable.h"
#include "trainer/tools/tokenizer_flags.h"

namespace muster::tools {
namespace {

struct Arguments {
  std::vector<std::string> prefixes;
  tokenizer::TokenizerOptions tokenizer;
  bool no_special_tokens = false;
  bool sums = false;
  bool json = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.Words("PREFIX...", 1, SIZE_MAX, &args->prefixes, "PREFIX.bin and PREFIX.idx");
  flags.Switch("--sums", &args->sums, "print the SHA-256 of the files, as sha256sum does");
  flags.Switch("--json", &args->json, "a list of objects");
  AddTokenizerFlags(flags, &args->tokenizer, &args->no_special_tokens);
  return flags;
}

// Of the tokenizer, or as given.
std::optional<int64_t> VocabSize(const tokenizer::TokenizerOptions& options) {
  if (!options.type.empty()) return OpenTokenizer(options)->vocab_size();
  if (options.vocab_size > 0) return options.vocab_size;
  return std::nullopt;
}

void Print(const std::string& prefix, const CheckReport& report) {
  for (const std::string& problem : report.problems) fmt::print(stderr, "{}\n", problem);
  const auto more = report.num_problems - static_cast<int64_t>(report.problems.size());
  if (more > 0) fmt::print(stderr, "{}: and {} more\n", prefix, more);
  fmt::print("{}: {}: {} documents, {} sequences, {} tokens from {} to {}\n", prefix,
             report.num_problems == 0 ? "good" : "DAMAGED", report.documents, report.sequences,
             report.tokens, report.lowest_token, report.highest_token);
  if (report.bin_sha256.empty()) return;
  fmt::print("{}  {}.bin\n{}  {}.idx\n", report.bin_sha256, prefix, report.idx_sha256, prefix);
}

nlohmann::ordered_json ToJson(const std::string& prefix, const CheckReport& report) {
  nlohmann::ordered_json problems = nlohmann::ordered_json::array();
  for (const std::string& problem : report.problems) problems.push_back(Printable(problem));
  nlohmann::ordered_json out = {{"prefix", Printable(prefix)},
                                {"good", report.num_problems == 0},
                                {"problems", problems},
                                {"num_problems", report.num_problems},
                                {"documents", report.documents},
                                {"sequences", report.sequences},
                                {"tokens", report.tokens},
                                {"lowest_token", report.lowest_token},
                                {"highest_token", report.highest_token}};
  if (!report.bin_sha256.empty()) {
    out["bin_sha256"] = report.bin_sha256;
    out["idx_sha256"] = report.idx_sha256;
  }
  return out;
}

// A data set that can't be opened has one problem.
CheckReport Check(const std::string& prefix, const CheckOptions& options) {
  try {
    return CheckDataset(prefix, options);
  } catch (const data::DataError& error) {
    CheckReport report;
    report.problems = {error.what()};
    report.num_problems = 1;
    return report;
  }
}

}  // namespace

int RunVerify(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  const CheckOptions options{VocabSize(args.tokenizer), args.sums};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  bool good = true;
  for (const std::string& word : args.prefixes) {
    const std::string prefix = DatasetPrefix(word);
    const CheckReport report = Check(prefix, options);
    good = good && report.num_problems == 0;
    if (args.json) {
      list.push_back(ToJson(prefix, report));
    } else {
      Print(prefix, report);
    }
  }
  if (args.json) fmt::print("{}\n", list.dump(1));
  return good ? 0 : data::kDataExitCode;
}

std::string VerifyHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
