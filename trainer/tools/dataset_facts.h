#pragma once

#include <cstdint>
#include <string>

#include "trainer/data/indexed_dataset.h"
#include "trainer/tools/length_histogram.h"

namespace muster::tools {

// PREFIX of PREFIX, PREFIX.bin or PREFIX.idx.
std::string DatasetPrefix(const std::string& word);

// "u16" and so on.
std::string TokenTypeName(data::TokenType type);

struct DatasetFacts {
  int64_t documents = 0;
  int64_t empty_documents = 0;
  int64_t sequences = 0;
  int64_t tokens = 0;
  bool multimodal = false;
  LengthHistogram document_lengths;
};

// Reads and checks the whole index. Throws data::DataError when an entry is wrong.
DatasetFacts ReadFacts(const data::IndexedDataset& dataset);

}  // namespace muster::tools
