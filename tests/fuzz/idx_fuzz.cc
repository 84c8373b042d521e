#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "trainer/data/data_error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/indexed_dataset.h"

// Any bytes beside any .bin are an index whose every token can be read, or an error that names one
// of the two files. The first two bytes are the size of the .bin; the rest is the .idx.

namespace {

namespace fs = std::filesystem;
using muster::data::BuildDatasets;
using muster::data::DataConfig;
using muster::data::DataError;
using muster::data::DataOrder;
using muster::data::IndexedDataset;
using muster::data::IndexOrder;

constexpr int64_t kSeqLength = 4;

class Files {
 public:
  Files() {
    const fs::path memory = "/dev/shm";
    const fs::path parent = fs::is_directory(memory) ? memory : fs::temp_directory_path();
    folder_ = (parent / ("muster_idx_fuzz_" + std::to_string(::getpid()))).string();
    fs::create_directories(folder_);
  }
  ~Files() { fs::remove_all(folder_); }
  std::string prefix() const { return folder_ + "/x"; }
  void Write(const std::string& suffix, const std::string& bytes) const {
    std::ofstream(prefix() + suffix, std::ios::binary) << bytes;
  }

 private:
  std::string folder_;
};

void ExpectNamed(const DataError& error, const std::string& prefix) {
  if (std::strstr(error.what(), prefix.c_str()) == nullptr) std::abort();
}

void ReadAll(const std::string& prefix, bool map) {
  const IndexedDataset dataset(prefix, map);
  bool whole = true;
  try {
    dataset.CheckAll(1);
  } catch (const DataError& error) {
    ExpectNamed(error, prefix);
    whole = false;
  }
  try {
    for (int64_t i = 0; i < dataset.lengths().size(); ++i) {
      std::vector<int64_t> tokens(static_cast<size_t>(std::max(dataset.lengths()[i], 0)));
      dataset.Read(i, 0, static_cast<int64_t>(tokens.size()), tokens.data());
    }
    for (int64_t d = 0; d < dataset.num_documents(); ++d) dataset.SequencesOf(d);
  } catch (const DataError& error) {
    ExpectNamed(error, prefix);
    if (whole) std::abort();
  }
}

void ReadSamples(const std::string& prefix, DataOrder order, IndexOrder index_order) {
  DataConfig config;
  config.paths.data_path = {prefix};
  config.split = "1";
  config.order = order;
  config.index_order = index_order;
  config.seq_length = kSeqLength;
  config.train_samples = 20;
  config.vocab_size = 200;
  config.eod = 7;
  config.reset_attention_mask = true;
  config.index_memory = 1 << 20;
  const auto built = BuildDatasets(config);
  std::vector<int64_t> tokens(kSeqLength + 1);
  std::vector<float> mask(kSeqLength);
  for (int64_t i = 0; built.train != nullptr && i < 20; ++i) {
    built.train->Prefetch(i);
    built.train->Get(i, tokens, mask);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Files files;
  if (size < 2) return 0;
  std::string bin(static_cast<size_t>(data[0]) | static_cast<size_t>(data[1]) << 8, '\0');
  for (size_t i = 0; i < bin.size(); ++i) bin[i] = static_cast<char>(i % 3 == 0 ? i % 250 : 0);
  files.Write(".bin", bin);
  files.Write(".idx", std::string(reinterpret_cast<const char*>(data) + 2, size - 2));
  for (const bool map : {true, false}) {
    try {
      ReadAll(files.prefix(), map);
    } catch (const DataError& error) {
      ExpectNamed(error, files.prefix());
    }
  }
  const std::pair<DataOrder, IndexOrder> orders[] = {
      {DataOrder::kShuffled, IndexOrder::kMegatron},
      {DataOrder::kShuffled, IndexOrder::kStreamed},
      {DataOrder::kSequential, IndexOrder::kMegatron},
      {DataOrder::kDocument, IndexOrder::kMegatron}};
  for (const auto& [order, index_order] : orders) {
    try {
      ReadSamples(files.prefix(), order, index_order);
    } catch (const DataError& error) {
      // Damaged lengths can ask for more memory than is allowed: the flag is the place then.
      if (std::strstr(error.what(), "--index-memory") == nullptr) {
        ExpectNamed(error, files.prefix());
      }
    }
  }
  return 0;
}
