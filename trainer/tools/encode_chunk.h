#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/indexed_format.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/text_chunks.h"

namespace muster::tools {

// What to do with each document.
struct EncodeOptions {
  std::string input;  // its name, for messages
  InputFormat format = InputFormat::kJsonl;
  std::vector<std::string> json_keys = {"text"};
  bool append_eod = false;
  data::TokenType token_type = data::TokenType::kInt32;
  // Only lines with (number - 1) % partitions == partition are read.
  int64_t partitions = 1;
  int64_t partition = 0;
};

// The documents of one key, as the writer takes them.
struct EncodedColumn {
  std::vector<uint8_t> tokens;
  std::vector<int32_t> lengths;
  std::vector<int32_t> sequences_per_document;
};

struct EncodedChunk {
  std::vector<EncodedColumn> columns;  // one for each key
  int64_t documents = 0;
  int64_t characters = 0;  // of the lines read, as Megatron counts them
};

// Turns chunks into tokens on one thread.
class ChunkEncoder {
 public:
  // Throws TokenizerError when EOD is asked of a tokenizer that has none.
  ChunkEncoder(const tokenizer::Tokenizer& tokenizer, const EncodeOptions& options);

  // Throws data::DataError naming file, line and column of the first line that can't be used.
  EncodedChunk Encode(const Chunk& chunk);

 private:
  void EncodeJsonLines(const Chunk& chunk, EncodedChunk& out);
  void EncodeText(const Chunk& chunk, EncodedChunk& out);
  void AddText(const Line& line, const std::string& text, EncodedChunk& out);
  // One document: its sequences go to `column`.
  void AddDocument(const std::vector<std::string>& texts, EncodedColumn& column);
  void AppendTokens(EncodedColumn& column);
  [[noreturn]] void Fail(int64_t line, size_t column, const std::string& reason) const;

  const EncodeOptions options_;
  std::unique_ptr<tokenizer::Encoder> encoder_;
  int32_t eod_ = -1;
  std::vector<int32_t> ids_;
};

}  // namespace muster::tools
