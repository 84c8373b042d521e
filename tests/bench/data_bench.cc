// Reading samples against the page cache, opening an index of a billion documents, building orders.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/data_files.h"
#include "tests/bench/report.h"
#include "trainer/data/dataset.h"
#include "trainer/data/gpt_index.h"
#include "trainer/data/index_budget.h"
#include "trainer/data/indexed_dataset.h"
#include "trainer/data/parallel_for.h"

namespace muster::bench {
namespace {

using data::DataConfig;
using data::DataOrder;
using data::IndexOrder;

constexpr int64_t kSeqLength = 8192;
constexpr double kMega = 1e6;
constexpr char kPageCache[] = "data.read.page_cache";

template <typename Work>
double SecondsBy(clockid_t clock, const Work& work) {
  const auto now = [clock] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}
template <typename Work>
double Seconds(const Work& work) {
  return SecondsBy(CLOCK_MONOTONIC, work);
}
// Of this thread: what other programs do meanwhile counts little.
template <typename Work>
double CpuSeconds(const Work& work) {
  return SecondsBy(CLOCK_THREAD_CPUTIME_ID, work);
}

// A figure of memory in /proc/self/status ("VmHWM", "RssAnon"), in MiB.
double StatusMib(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(name + ":")) return std::stod(line.substr(name.size() + 1)) / 1024;
  }
  return 0;
}

// The whole file by read(2), once, with a buffer that stays in the second-level cache.
double ReadFileSpeed(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::vector<char> buffer(128 << 10);
  int64_t bytes = 0;
  const double seconds = CpuSeconds([&] {
    for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) bytes += n;
  });
  ::close(fd);
  return static_cast<double>(bytes) / seconds / kMega;
}

DataConfig Config(const std::string& prefix, int64_t samples) {
  DataConfig config;
  config.paths.data_path = {prefix};
  config.split = "1";
  config.seq_length = kSeqLength;
  config.train_samples = samples;
  config.vocab_size = kVocabulary;
  config.eod = kVocabulary - 1;
  return config;
}

// Bytes of .bin a second, every sample read once.
double SampleSpeed(const DataConfig& config) {
  const data::Datasets built = data::BuildDatasets(config);
  std::vector<int64_t> tokens(kSeqLength + 1);
  data::Sample sample{tokens};
  const int64_t count = built.train->size();
  const double seconds = CpuSeconds([&] {
    for (int64_t i = 0; i < count; ++i) built.train->Read(i, sample);
  });
  return static_cast<double>(count * kSeqLength * 4) / seconds / kMega;
}

struct ReadingCase {
  const char* name;
  IndexOrder order;
  bool map;
  bool eod_rules;
};
constexpr ReadingCase kReadingCases[] = {
    {"data.read.mapped.megatron", IndexOrder::kMegatron, true, false},
    {"data.read.mapped.streamed", IndexOrder::kStreamed, true, false},
    {"data.read.pread.megatron", IndexOrder::kMegatron, false, false},
    {"data.read.pread.streamed", IndexOrder::kStreamed, false, false},
    {"data.read.mapped.streamed.eod_rules", IndexOrder::kStreamed, true, true}};

// The best of several passes for each row, all of them in every pass: other programs run at times,
// and the processor's speed changes.
std::map<std::string, double> MeasureReading(const std::string& folder, int64_t megabytes) {
  constexpr int kPasses = 7;
  const std::string prefix = folder + "/text";
  std::map<std::string, double> best;
  const auto keep = [&best](const std::string& name, double speed) {
    best[name] = std::max(best[name], speed);
  };
  ReadFileSpeed(prefix + ".bin");  // into the page cache
  for (int pass = 0; pass < kPasses; ++pass) {
    keep(kPageCache, ReadFileSpeed(prefix + ".bin"));
    for (const ReadingCase& c : kReadingCases) {
      DataConfig config = Config(prefix, megabytes * 1'000'000 / 4 / kSeqLength - 1);
      config.index_order = c.order;
      config.mmap_bin_files = c.map;
      config.eod_mask_loss = config.reset_position_ids = config.reset_attention_mask = c.eod_rules;
      keep(c.name, SampleSpeed(config));
    }
  }
  return best;
}

// How long a step waits for its sample when the file is not in memory: with and without asking for
// it one step ahead. Steps take a few milliseconds, as they do in training.
void BenchCold(const std::string& folder, Report& report) {
  constexpr int64_t kSteps = 300;
  constexpr std::chrono::milliseconds kStep(3);
  const std::string prefix = folder + "/text";
  std::vector<int64_t> tokens(kSeqLength + 1);
  std::vector<float> mask(kSeqLength);
  for (const bool map : {true, false}) {
    for (const bool ahead : {false, true}) {
      DataConfig config = Config(prefix, kSteps);
      config.index_order = IndexOrder::kStreamed;
      config.mmap_bin_files = map;
      DropFromPageCache(prefix + ".bin");
      const data::Datasets built = data::BuildDatasets(config);
      double waited = 0;
      for (int64_t i = 0; i < kSteps; ++i) {
        waited += Seconds([&] { built.train->Get(i, tokens, mask); });
        if (ahead) built.train->Prefetch((i + 1) % kSteps);
        std::this_thread::sleep_for(kStep);
      }
      report.Add({std::string("data.cold.") + (map ? "mapped" : "pread") +
                      (ahead ? ".asked_ahead" : ".not_asked"),
                  waited / kSteps * 1e6, "us", false, "waiting for a shuffled sample from disk"});
    }
  }
}

void BenchOpening(const std::string& folder, int64_t documents, Report& report) {
  const std::string prefix = folder + "/billion";
  MakeUniformDataset(prefix, documents);
  DropFromPageCache(prefix + ".idx");
  const double before = StatusMib("RssAnon");
  int64_t sum = 0;
  const auto open = [&] { sum += data::IndexedDataset(prefix).lengths().size(); };
  report.Add({"data.open.billion_documents.cold", Seconds(open), "s", false,
              "header, sizes, ends and 256 entries of each array; nothing in memory"});
  report.Add({"data.open.billion_documents", Seconds(open), "s", false, "the same, warm"});
  DataConfig config = Config(prefix, documents);
  config.seq_length = 1024;
  config.index_order = IndexOrder::kStreamed;
  const double first_sample = Seconds([&] {
    const data::Datasets built = data::BuildDatasets(config);
    std::vector<int64_t> tokens(1025);
    std::vector<float> mask(1024);
    built.train->Get(0, tokens, mask);
    sum += tokens.front();
  });
  report.Add({"data.open.billion_documents.first_sample", first_sample, "s", false,
              "streamed order, to the first sample"});
  report.Add({"data.open.billion_documents.memory", StatusMib("RssAnon") - before, "MiB", false,
              "beyond the mapping"});
  const data::IndexedDataset dataset(prefix);
  const double checking = Seconds([&] { dataset.CheckAll(data::HardwareThreads()); });
  report.Add({"data.open.billion_documents.every_entry", checking, "s", false,
              "all " + std::to_string(documents * 20 / 1'000'000'000) + " GB of it, " +
                  std::to_string(data::HardwareThreads()) + " threads"});
  std::filesystem::remove(prefix + ".idx");
  std::filesystem::remove(prefix + ".bin");
}

void BenchBuilding(Report& report) {
  constexpr int64_t kDocuments = 50'000'000;
  const std::vector<int32_t> lengths(kDocuments, 1000);
  const data::LengthView view(reinterpret_cast<const uint8_t*>(lengths.data()), kDocuments);
  data::GptIndexParams params;
  params.end_sequence = kDocuments;
  params.seq_length = 1000;
  const data::GptIndexShape shape = data::ShapeOf(kDocuments * 1000, params);
  const double seconds = SecondsBy(CLOCK_PROCESS_CPUTIME_ID, [&] {
    data::BuildGptIndex(view, shape, params, data::HardwareThreads());
  });
  report.Add({"data.index.megatron", seconds / kDocuments * 1e9, "ns", false,
              "of CPU time for a document and a sample; 50 million of each"});
  const data::IndexCost cost = {.documents = kDocuments, .samples = kDocuments};
  report.Add({"data.index.megatron.estimate", cost.Seconds() / kDocuments * 1e9, "ns", false,
              "what the trainer expects of it, from a short measurement"});
}

void Run(const std::string& folder, int64_t megabytes, int64_t documents, bool json) {
  MakeTextDataset(folder + "/text", megabytes);
  const std::map<std::string, double> reading = MeasureReading(folder, megabytes);
  std::map<std::string, Report::Reference> references;
  for (const ReadingCase& c : kReadingCases) {
    references[c.name] = {reading.at(kPageCache), "page cache"};
  }
  for (const char* name : {"data.open.billion_documents", "data.open.billion_documents.cold"}) {
    references[name] = {2, "the limit of 2 s"};
  }
  references["data.open.billion_documents.memory"] = {200, "the limit of 200 MiB"};
  Report report(json, references);
  report.Add(
      {kPageCache, reading.at(kPageCache), "MB/s", true, "read(2) of the same file, one core"});
  for (const ReadingCase& c : kReadingCases) {
    report.Add({c.name, reading.at(c.name), "MB/s", true,
                "samples of 8192 tokens, one core, warm, the first touch of each page included"});
  }
  BenchCold(folder, report);
  BenchBuilding(report);
  BenchOpening(folder, documents, report);
  report.Finish();
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  CLI::App app("Speed of reading training data: samples, indices, orders");
  bool json = false;
  std::string parent = std::filesystem::temp_directory_path().string();
  int64_t megabytes = 1000;
  int64_t documents = 1'000'000'000;
  app.add_flag("--json", json, "rows as a JSON list");
  app.add_option("--folder", parent, "where to put the files")->capture_default_str();
  app.add_option("--megabytes", megabytes, "of tokens")->capture_default_str();
  app.add_option("--documents", documents, "of the large index (20 bytes each)")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const muster::bench::WorkFolder folder(parent);
    muster::bench::Run(folder.path(), megabytes, documents, json);
  } catch (const std::exception& error) {
    std::cerr << "muster_data_bench: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
