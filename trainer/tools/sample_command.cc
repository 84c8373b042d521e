#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "trainer/data/data_error.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/dataset_facts.h"
#include "trainer/tools/tokenizer_flags.h"

namespace muster::tools {
namespace {

struct Arguments {
  std::vector<std::string> words;
  tokenizer::TokenizerOptions tokenizer;
  bool no_special_tokens = false;
  int64_t seed = 0;
  int64_t first = -1;
  bool json = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.Words("N PREFIX", 2, 2, &args->words, "how many documents of which PREFIX.bin and .idx");
  flags.Integer("--seed", &args->seed, 0, "other documents at random; default 0");
  flags.Integer("--first", &args->first, 0, "documents from this number on, instead of at random");
  flags.Switch("--json", &args->json, "an object a line");
  AddTokenizerFlags(flags, &args->tokenizer, &args->no_special_tokens);
  return flags;
}

int64_t ParseCount(const std::string& word) {
  int64_t count = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), count);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || count < 1) {
    throw UsageError("sample " + word + ": expected a number of documents, at least 1");
  }
  return count;
}

std::set<int64_t> Choose(const Arguments& args, int64_t count, int64_t documents) {
  std::set<int64_t> chosen;
  count = std::min(count, documents);
  if (args.first >= 0) {
    for (int64_t d = args.first; d < documents && d < args.first + count; ++d) chosen.insert(d);
    return chosen;
  }
  std::mt19937_64 random(static_cast<uint64_t>(args.seed));
  while (static_cast<int64_t>(chosen.size()) < count) {
    chosen.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(documents)));
  }
  return chosen;
}

std::vector<int32_t> ReadIds(const data::IndexedDataset& dataset, int64_t sequence) {
  const int64_t length = dataset.lengths()[sequence];
  std::vector<int64_t> wide(static_cast<size_t>(std::max<int64_t>(length, 0)));
  dataset.Read(sequence, 0, length, wide.data());
  std::vector<int32_t> ids;
  for (size_t i = 0; i < wide.size(); ++i) {
    ids.push_back(static_cast<int32_t>(wide[i]));
    if (ids.back() != wide[i]) {
      throw data::DataError(fmt::format("{}: {} is no id of a token",
                                        dataset.Where(sequence, static_cast<int64_t>(i)), wide[i]));
    }
  }
  return ids;
}

// Text, or the ids where there is no tokenizer.
std::string Decode(const tokenizer::Tokenizer* tokenizer, const data::IndexedDataset& dataset,
                   int64_t sequence) {
  const std::vector<int32_t> ids = ReadIds(dataset, sequence);
  if (tokenizer == nullptr) return fmt::format("{}", fmt::join(ids, " "));
  try {
    return tokenizer->Decode(ids);
  } catch (const tokenizer::TokenizerError& error) {
    throw data::DataError(fmt::format("{}: {} (another tokenizer wrote this?)",
                                      dataset.Where(sequence, 0), error.what()));
  }
}

void PrintDocument(const Arguments& args, const tokenizer::Tokenizer* tokenizer,
                   const data::IndexedDataset& dataset, int64_t document) {
  nlohmann::ordered_json sequences = nlohmann::ordered_json::array();
  int64_t tokens = 0;
  const int64_t end = dataset.document_begin(document + 1);
  for (int64_t i = dataset.document_begin(document); i < end; ++i) {
    tokens += dataset.lengths()[i];
    sequences.push_back({{"tokens", dataset.lengths()[i]},
                         {tokenizer != nullptr ? "text" : "ids", Decode(tokenizer, dataset, i)}});
  }
  if (args.json) {
    const nlohmann::ordered_json out = {
        {"document", document}, {"tokens", tokens}, {"sequences", sequences}};
    fmt::print("{}\n", out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return;
  }
  fmt::print("--- document {}: {} sequence{}, {} tokens\n", document, sequences.size(),
             sequences.size() == 1 ? "" : "s", tokens);
  for (const auto& sequence : sequences) {
    fmt::print("{}\n", sequence.at(tokenizer != nullptr ? "text" : "ids").get<std::string>());
  }
}

}  // namespace

int RunSample(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  const int64_t count = ParseCount(args.words[0]);
  const data::IndexedDataset dataset(DatasetPrefix(args.words[1]));
  dataset.CheckAll(1);
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  if (!args.tokenizer.type.empty()) tokenizer = OpenTokenizer(args.tokenizer);
  for (const int64_t document : Choose(args, count, dataset.num_documents())) {
    PrintDocument(args, tokenizer.get(), dataset, document);
  }
  return 0;
}

std::string SampleHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
