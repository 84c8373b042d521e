#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/data/data_paths.h"
#include "trainer/data/data_report.h"
#include "trainer/data/sample_source.h"

// What the trainer reads: from the data flags to the samples of each split. No LibTorch here.

namespace muster::data {

// `--data-order`.
enum class DataOrder {
  kShuffled,    // as `--index-order` says
  kSequential,  // file order: sample k holds tokens k*s .. k*s+s
  kDocument,    // sample k is document k, cut or padded to s+1 tokens (padding is 0 and does not
                // count in the loss)
};

// `--index-order`: how samples are shuffled.
enum class IndexOrder {
  kMegatron,  // documents, then samples; an array of all of them
  kStreamed,  // samples of each epoch by a computed permutation; no array
};

struct DataConfig {
  DataPathFlags paths;
  bool mock_data = false;  // `--mock-data`: instead of files; `split` is ignored, as in Megatron

  std::string split = "969, 30, 1";  // `--split`
  DataOrder order = DataOrder::kShuffled;
  IndexOrder index_order = IndexOrder::kMegatron;
  int64_t seq_length = 0;
  uint32_t seed = 1234;  // `--seed`
  // Samples wanted of each split; nothing means one epoch. A split may hold more than was asked,
  // never fewer.
  std::optional<int64_t> train_samples = 0;
  std::optional<int64_t> valid_samples = 0;
  std::optional<int64_t> test_samples = 0;

  int64_t vocab_size = 0;      // token ids must be below it (the padded vocabulary); 0: not checked
  int64_t eod = -1;            // needed by the three EOD rules and mock_data
  int64_t pad = -1;            // labels equal to it don't count in the loss; -1: none
  bool eod_mask_loss = false;  // `--eod-mask-loss`: no loss where the input is EOD
  bool reset_position_ids = false;      // `--reset-position-ids`
  bool reset_attention_mask = false;    // `--reset-attention-mask`
  bool inter_document_masking = false;  // `--dataloader-inter-document-masking`
  bool drop_last_partial_validation_sequence = true;
  bool add_extra_token_to_sequence = true;  // false: the last position of a sample has no label
  // `--mid-level-dataset-surplus`: slack of a blend's parts.
  double mid_level_dataset_surplus = 0.005;

  int64_t index_memory = int64_t{8}
                         << 30;  // `--index-memory`, bytes; Megatron's order may take them
  bool use_index_cache = false;  // read and write Megatron's index caches
  std::string data_cache_path;   // `--data-cache-path`; empty: PREFIX/cache/GPTDataset_indices
  // In the caches' keys: Megatron's tokenizer.unique_identifiers (python_json.h).
  std::string tokenizer_identity = "null";

  bool mmap_bin_files = true;  // `--no-mmap-bin-files` clears it
  DataReport report;
};

// A split that is empty, or of which no samples were asked, is null.
struct Datasets {
  std::unique_ptr<SampleSource> train;
  std::unique_ptr<SampleSource> valid;
  std::unique_ptr<SampleSource> test;
};

// Opens the files, says what the indices will take, and builds them or finds them in the cache.
// Throws DataError (a missing prefix, a damaged .idx, a split without tokens, a bad `split` text,
// an order above index_memory).
Datasets BuildDatasets(const DataConfig& config);

}  // namespace muster::data
