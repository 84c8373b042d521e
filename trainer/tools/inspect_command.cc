#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/data/indexed_dataset.h"
#include "trainer/tools/byte_source.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/dataset_facts.h"
#include "trainer/tools/flags.h"
#include "trainer/tools/printable.h"

namespace muster::tools {
namespace {

struct Arguments {
  std::vector<std::string> prefixes;
  bool json = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.Words("PREFIX...", 1, SIZE_MAX, &args->prefixes, "PREFIX.bin and PREFIX.idx");
  flags.Switch("--json", &args->json, "a list of objects");
  return flags;
}

nlohmann::ordered_json Describe(const std::string& prefix) {
  const data::IndexedDataset dataset(prefix);
  const DatasetFacts facts = ReadFacts(dataset);
  const LengthHistogram& lengths = facts.document_lengths;
  return {{"prefix", Printable(prefix)},
          {"token_type", TokenTypeName(dataset.token_type())},
          {"tokens", facts.tokens},
          {"documents", facts.documents},
          {"empty_documents", facts.empty_documents},
          {"sequences", facts.sequences},
          {"multimodal", facts.multimodal},
          {"shortest", lengths.Quantile(0)},
          {"median", lengths.Quantile(0.5)},
          {"mean", lengths.mean()},
          {"longest", lengths.Quantile(1)},
          {"bin_bytes", FileSize(prefix + ".bin")},
          {"idx_bytes", FileSize(prefix + ".idx")}};
}

void Print(const nlohmann::ordered_json& facts) {
  fmt::print("{}\n", facts.at("prefix").get<std::string>());
  for (const auto& [name, value] : facts.items()) {
    if (name == "prefix") continue;
    fmt::print("  {:<16}{}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

}  // namespace

int RunInspect(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const std::string& word : args.prefixes) {
    list.push_back(Describe(DatasetPrefix(word)));
    if (!args.json) Print(list.back());
  }
  if (args.json) fmt::print("{}\n", list.dump(1));
  return 0;
}

std::string InspectHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
