#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/data/golden.h"
#include "trainer/data/data_error.h"
#include "trainer/data/dataset.h"
#include "trainer/data/indexed_writer.h"

namespace muster::data::testing {

// Data sets whose tokens count up from 0, and the samples that are made of them.
class TokensTest : public ::testing::Test {
 protected:
  std::string Prefix(const std::string& name) const { return (folder_.path() / name).string(); }

  // PREFIX.bin and PREFIX.idx: a document for each length, tokens counting up through all of them.
  void Write(const std::vector<int32_t>& lengths, const std::string& name = "x") {
    IndexedWriter writer(Prefix(name), TokenType::kUint16);
    std::vector<uint16_t> tokens(
        static_cast<size_t>(std::accumulate(lengths.begin(), lengths.end(), 0)));
    std::iota(tokens.begin(), tokens.end(), uint16_t{0});
    const std::vector<int32_t> ones(lengths.size(), 1);
    writer.Append({reinterpret_cast<const uint8_t*>(tokens.data()), tokens.size() * 2}, lengths,
                  ones);
    writer.Finish();
    config_.paths.data_path = {Prefix(name)};
    config_.split = "1";
  }

  std::vector<int64_t> Tokens(const SampleSource& source, int64_t index) {
    std::vector<int64_t> tokens(static_cast<size_t>(source.seq_length()) + 1);
    mask_.resize(tokens.size() - 1);
    source.Get(index, tokens, mask_);
    return tokens;
  }

  // What BuildDatasets says when it refuses.
  std::string Error() const {
    try {
      BuildDatasets(config_);
    } catch (const DataError& error) {
      return error.what();
    }
    return "(no DataError)";
  }

  TempFolder folder_;
  DataConfig config_;
  std::vector<float> mask_;
};

}  // namespace muster::data::testing
