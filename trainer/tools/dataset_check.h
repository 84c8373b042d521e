#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster::tools {

struct CheckOptions {
  std::optional<int64_t> vocab_size;  // tokens must be below it
  bool sums = false;                  // SHA-256 of both files
};

// What a full check found.
struct CheckReport {
  std::vector<std::string> problems;  // the first ones, each with path and offset
  int64_t num_problems = 0;
  int64_t documents = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  int64_t lowest_token = 0;
  int64_t highest_token = 0;
  std::string bin_sha256;  // with `sums`
  std::string idx_sha256;
};

// Reads all of PREFIX.idx and, unless that has a problem, all of PREFIX.bin. Throws data::DataError
// when the files can't be opened as a data set at all.
CheckReport CheckDataset(const std::string& prefix, const CheckOptions& options);

}  // namespace muster::tools
