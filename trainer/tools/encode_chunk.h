#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/indexed_format.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tools/encoded_column.h"
#include "trainer/tools/json_line.h"
#include "trainer/tools/sentence_splitter.h"
#include "trainer/tools/text_chunks.h"

namespace muster::tools {

// Which lines go to which part of the output.
struct Partitioning {
  int64_t count = 1;
  // 0: line i goes to part i % count; else to part i / lines_per_part.
  int64_t lines_per_part = 0;

  int64_t PartOf(int64_t line_index) const {
    return lines_per_part > 0 ? std::min(line_index / lines_per_part, count - 1)
                              : line_index % count;
  }
};

// What to do with each document.
struct EncodeOptions {
  std::vector<std::string> inputs;  // their names, for messages
  InputFormat format = InputFormat::kJsonl;
  std::vector<std::string> json_keys = {"text"};
  bool append_eod = false;
  data::TokenType token_type = data::TokenType::kInt32;
  Partitioning partitioning;
  size_t max_document = 1 << 28;  // bytes of a line or document
  bool skip_bad_lines = false;
  tokenizer::EncoderOptions encoder;
  std::string spill_folder = ".";  // for the tokens of very long texts
  // Cuts each text into sentences, the sequences of its document; null: not. Outlives the encoder.
  const SentenceSplitter* splitter = nullptr;
};

// A line that was left out.
struct SkippedLine {
  size_t file;
  int64_t line;
  size_t column;
  std::string reason;
};

struct EncodedChunk {
  std::vector<EncodedColumn> columns;  // of part p and key k: p * keys + k
  std::vector<SkippedLine> skipped;
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t characters = 0;  // of the lines read, as Megatron counts them
  InputPosition end;       // as in Chunk
  int64_t taken = 0;
};

// Turns chunks into tokens on one thread.
class ChunkEncoder {
 public:
  // Throws TokenizerError when EOD is asked of a tokenizer that has none.
  ChunkEncoder(const tokenizer::Tokenizer& tokenizer, const EncodeOptions& options);

  // Takes the text of `chunk` apart. Throws data::DataError naming file, line and column of the
  // first line that can't be used, unless such lines are skipped.
  EncodedChunk Encode(Chunk& chunk);

 private:
  void EncodeJsonLines(const Chunk& chunk, EncodedChunk& out);
  void EncodeText(const Chunk& chunk, EncodedChunk& out);
  void EncodeFile(const Chunk& chunk, EncodedChunk& out);
  // One document of part `part`; `texts` has its texts for each key. Adds all of it or, throwing
  // LineError, nothing.
  void AddDocument(int64_t part, std::span<const Texts> texts, EncodedChunk& out);
  void AddTexts(const Texts& texts, EncodedColumn& column);
  void AddSequence(std::string_view text, EncodedColumn& column);
  void CheckSize(std::string_view text) const;
  // Throws TokenizerError for ids from number `first` on that the token type can't hold.
  void CheckIds(const EncodedColumn& column, size_t first) const;
  // Notes the line as skipped, or throws.
  void Refuse(const SkippedLine& line, EncodedChunk& out) const;

  const EncodeOptions options_;
  std::unique_ptr<tokenizer::Encoder> encoder_;
  int32_t eod_ = -1;
  std::vector<std::string_view> sentences_;
};

}  // namespace muster::tools
