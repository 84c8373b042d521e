#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/sample_source.h"

// What the trainer reads: from the data flags to the samples of each split. No LibTorch here.

namespace muster::data {

// `--data-order`.
enum class DataOrder {
  kShuffled,    // Megatron's: documents, then samples shuffled
  kSequential,  // file order: sample k holds tokens k*s .. k*s+s
  kDocument,    // sample k is document k, cut or padded to s+1 tokens (padding is 0 and does not
                // count in the loss)
};

struct DataConfig {
  // `--data-path`: PREFIX, or PREFIX..., or WEIGHT PREFIX WEIGHT PREFIX ... (PREFIX.bin and
  // PREFIX.idx).
  std::vector<std::string> data_path;
  // `--train-data-path`, `--valid-data-path`, `--test-data-path`: instead of data_path; `split` is
  // then ignored.
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  // `--mock-data`: instead of all of the above; `split` is ignored, as in Megatron.
  bool mock_data = false;

  std::string split = "969, 30, 1";  // `--split`
  DataOrder order = DataOrder::kShuffled;
  int64_t seq_length = 0;
  uint32_t seed = 1234;  // `--seed`
  // Samples wanted of each split; nothing means one epoch. A split may hold more than was asked,
  // never fewer.
  std::optional<int64_t> train_samples = 0;
  std::optional<int64_t> valid_samples = 0;
  std::optional<int64_t> test_samples = 0;

  int64_t vocab_size = 0;      // token ids must be below it (the padded vocabulary); 0: not checked
  int64_t eod = -1;            // needed by eod_mask_loss and mock_data
  int64_t pad = -1;            // labels equal to it don't count in the loss; -1: none
  bool eod_mask_loss = false;  // `--eod-mask-loss`: no loss where the input is EOD
  bool drop_last_partial_validation_sequence = true;
  bool add_extra_token_to_sequence = true;  // false: the last position of a sample has no label
  // `--mid-level-dataset-surplus`: slack of a blend's parts.
  double mid_level_dataset_surplus = 0.005;
  int64_t index_memory = int64_t{8} << 30;  // bytes; a shuffled order that needs more is refused
  bool mmap_bin_files = true;               // `--no-mmap-bin-files` clears it
};

// A split that is empty, or of which no samples were asked, is null.
struct Datasets {
  std::unique_ptr<SampleSource> train;
  std::unique_ptr<SampleSource> valid;
  std::unique_ptr<SampleSource> test;
};

// Opens the files and builds the indices in memory. Throws DataError (a missing prefix, a damaged
// .idx, a split without tokens, a bad `split` text).
Datasets BuildDatasets(const DataConfig& config);

}  // namespace muster::data
