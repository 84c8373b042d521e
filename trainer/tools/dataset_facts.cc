#include "trainer/tools/dataset_facts.h"

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
  dataset.CheckAll(1);
  DatasetFacts facts;
  facts.documents = dataset.num_documents();
  facts.sequences = dataset.lengths().size();
  facts.tokens = dataset.TokensBefore(facts.sequences);
  const data::MappedFile index(dataset.prefix() + ".idx");
  const int64_t plain = data::kIndexHeaderBytes + 12 * facts.sequences + 8 * (facts.documents + 1);
  facts.multimodal = facts.sequences > 0 && index.size() == plain + facts.sequences;
  for (int64_t d = 0; d < facts.documents; ++d) {
    const int64_t length = dataset.TokensBefore(dataset.document_begin(d + 1)) -
                           dataset.TokensBefore(dataset.document_begin(d));
    if (length == 0) ++facts.empty_documents;
    facts.document_lengths.Add(length);
  }
  return facts;
}

}  // namespace muster::tools
