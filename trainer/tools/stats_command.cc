#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "trainer/data/indexed_dataset.h"
#include "trainer/data/partial_file.h"
#include "trainer/tools/commands.h"
#include "trainer/tools/dataset_facts.h"
#include "trainer/tools/flags.h"
#include "trainer/tools/printable.h"

namespace muster::tools {
namespace {

constexpr std::pair<const char*, double> kQuantiles[] = {
    {"shortest", 0}, {"p10", 0.1}, {"median", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"longest", 1}};

struct Arguments {
  std::vector<std::string> prefix;
  bool sequences = false;
  std::string svg;
  bool json = false;
};

Flags MakeFlags(Arguments* args) {
  Flags flags;
  flags.Words("PREFIX", 1, 1, &args->prefix, "PREFIX.bin and PREFIX.idx");
  flags.Switch("--sequences", &args->sequences, "lengths of sequences, not of documents");
  flags.Text("--svg", &args->svg, "write the histogram to this file");
  flags.Switch("--json", &args->json, "quantiles and bins as an object");
  return flags;
}

LengthHistogram Read(const data::IndexedDataset& dataset, bool sequences) {
  if (!sequences) return ReadFacts(dataset).document_lengths;
  LengthHistogram histogram;
  dataset.CheckAll(1);
  const data::LengthView lengths = dataset.lengths();
  for (int64_t i = 0; i < lengths.size(); ++i) histogram.Add(lengths[i]);
  return histogram;
}

void PrintJson(const LengthHistogram& histogram, const std::string& what) {
  nlohmann::ordered_json out = {{"of", what},
                                {"count", histogram.count()},
                                {"tokens", histogram.total()},
                                {"mean", histogram.mean()}};
  for (const auto& [name, q] : kQuantiles) out[name] = histogram.Quantile(q);
  out["bins"] = nlohmann::ordered_json::array();
  for (const auto& bin : histogram.Bins()) {
    out["bins"].push_back(
        {{"from", bin.low}, {"to", bin.high}, {"count", bin.count}, {"tokens", bin.total}});
  }
  fmt::print("{}\n", out.dump(1));
}

void PrintText(const LengthHistogram& histogram, const std::string& what) {
  fmt::print("{} {}, {} tokens; mean {:.1f}", histogram.count(), what, histogram.total(),
             histogram.mean());
  for (const auto& [name, q] : kQuantiles) fmt::print(", {} {}", name, histogram.Quantile(q));
  fmt::print("\n\n{}", HistogramText(histogram.Bins(), what));
}

}  // namespace

int RunStats(const std::vector<std::string>& words) {
  Arguments args;
  MakeFlags(&args).Parse(words);
  const std::string what = args.sequences ? "sequences" : "documents";
  const std::string prefix = DatasetPrefix(args.prefix[0]);
  const LengthHistogram histogram = Read(data::IndexedDataset(prefix), args.sequences);
  args.json ? PrintJson(histogram, what) : PrintText(histogram, what);
  if (!args.svg.empty()) {
    const std::string title = fmt::format("{}: {} {}, {} tokens", Printable(prefix),
                                          histogram.count(), what, histogram.total());
    const std::string svg = HistogramSvg(histogram.Bins(), title, what);
    data::PartialFile file(args.svg);
    file.Write(svg.data(), svg.size());
    file.Publish();
  }
  return 0;
}

std::string StatsHelp() {
  Arguments args;
  return MakeFlags(&args).Help();
}

}  // namespace muster::tools
