#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/blend.h"

// Which files a run reads, from Megatron's six ways of saying it.

namespace muster::data {

struct DataPathFlags {
  // `--data-path`: PREFIX, or PREFIX..., or WEIGHT PREFIX WEIGHT PREFIX ... (PREFIX.bin and
  // PREFIX.idx).
  std::vector<std::string> data_path;
  // `--data-args-path`: a file with the words of --data-path.
  std::string data_args_path;
  // `--train-data-path` and so on: a list for each split; `--split` does not count.
  std::vector<std::string> train_data_path;
  std::vector<std::string> valid_data_path;
  std::vector<std::string> test_data_path;
  // `--per-split-data-args-path`: a JSON file {"train": ..., "valid": ..., "test": ...}, each a
  // list of words, a text with them, or null.
  std::string per_split_data_args_path;

  bool HasLists() const {
    return !train_data_path.empty() || !valid_data_path.empty() || !test_data_path.empty();
  }
};

struct DataPaths {
  std::optional<BlendList> shared;                    // cut by --split; or
  std::array<std::optional<BlendList>, 3> per_split;  // train, valid, test
};

// Reads the files where there are any; the first way given counts. Throws DataError: a file that
// can't be read or is no such JSON (with the place), weights for some of the prefixes only, no data
// at all.
DataPaths ReadDataPaths(const DataPathFlags& flags);

}  // namespace muster::data
