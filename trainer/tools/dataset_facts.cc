#include "trainer/tools/dataset_facts.h"

#include <fmt/format.h>

#include "trainer/data/data_error.h"
#include "trainer/data/mapped_file.h"

namespace muster::tools {

std::string DatasetPrefix(const std::string& word) {
  for (const std::string suffix : {".bin", ".idx"}) {
    if (word.size() > suffix.size() && word.ends_with(suffix)) {
      return word.substr(0, word.size() - suffix.size());
    }
  }
  return word;
}

std::string TokenTypeName(data::TokenType type) {
  switch (type) {
    case data::TokenType::kUint8:
      return "uint8";
    case data::TokenType::kInt8:
      return "int8";
    case data::TokenType::kInt16:
      return "int16";
    case data::TokenType::kInt32:
      return "int32";
    case data::TokenType::kInt64:
      return "int64";
    case data::TokenType::kUint16:
      return "uint16";
  }
  return "unknown";
}

DatasetFacts ReadFacts(const data::IndexedDataset& dataset) {
  DatasetFacts facts;
  facts.documents = dataset.num_documents();
  const data::LengthView lengths = dataset.lengths();
  facts.sequences = lengths.size();
  const data::MappedFile index(dataset.prefix() + ".idx");
  const int64_t plain = data::kIndexHeaderBytes + 12 * facts.sequences + 8 * (facts.documents + 1);
  facts.multimodal = facts.sequences > 0 && index.size() == plain + facts.sequences;
  for (int64_t d = 0; d < facts.documents; ++d) {
    const int64_t begin = dataset.document_begin(d);
    const int64_t end = dataset.document_begin(d + 1);
    if (begin < 0 || begin > end || end > facts.sequences) {
      throw data::DataError(fmt::format(
          "{}.idx, offset {}: document {} is sequences {} to {} of {}: damaged", dataset.prefix(),
          data::kIndexHeaderBytes + 12 * facts.sequences + 8 * d, d, begin, end, facts.sequences));
    }
    int64_t length = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (lengths[i] < 0) {
        throw data::DataError(fmt::format("{}.idx, offset {}: sequence {} has {} tokens: damaged",
                                          dataset.prefix(), data::kIndexHeaderBytes + 4 * i, i,
                                          lengths[i]));
      }
      length += lengths[i];
    }
    if (length == 0) ++facts.empty_documents;
    facts.tokens += length;
    facts.document_lengths.Add(length);
  }
  return facts;
}

}  // namespace muster::tools
