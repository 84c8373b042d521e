#include "trainer/tools/encode_chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "trainer/data/data_error.h"
#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/byte_counts.h"

namespace muster::tools {
namespace {

using tokenizer::TokenizerError;

constexpr int64_t kMaxSequenceTokens = std::numeric_limits<int32_t>::max();

}  // namespace

ChunkEncoder::ChunkEncoder(const tokenizer::Tokenizer& tokenizer, const EncodeOptions& options)
    : options_(options), encoder_(tokenizer.NewEncoder(options.encoder)) {
  if (!options.append_eod) return;
  if (!tokenizer.eod()) {
    throw TokenizerError(
        "--append-eod: the tokenizer names no end-of-document token (eos_token in "
        "tokenizer_config.json)");
  }
  eod_ = *tokenizer.eod();
}

EncodedChunk ChunkEncoder::Encode(Chunk& chunk) {
  EncodedChunk out;
  out.columns.resize(static_cast<size_t>(options_.partitioning.count) * options_.json_keys.size());
  // English has about four bytes a token.
  for (EncodedColumn& column : out.columns) {
    column.ids.reserve(chunk.bytes.size() / (4 * out.columns.size()));
  }
  out.end = chunk.end;
  out.taken = chunk.taken;
  if (!chunk.problem.empty()) {
    Refuse({chunk.file, chunk.first_line, 1, chunk.problem}, out);
  } else if (options_.format == InputFormat::kJsonl) {
    EncodeJsonLines(chunk, out);
  } else if (options_.format == InputFormat::kFile) {
    EncodeFile(chunk, out);
  } else {
    EncodeText(chunk, out);
  }
  for (EncodedColumn& column : out.columns) {
    out.tokens += column.num_tokens();
    column.Close(options_.token_type);
  }
  return out;
}

void ChunkEncoder::Refuse(const SkippedLine& line, EncodedChunk& out) const {
  if (!options_.skip_bad_lines) {
    throw data::DataError(fmt::format("{}:{}:{}: {}", options_.inputs[line.file], line.line,
                                      line.column, line.reason));
  }
  out.skipped.push_back(line);
}

void ChunkEncoder::CheckSize(std::string_view text) const {
  if (text.size() <= options_.max_document) return;
  throw LineError(1, fmt::format("more than {} MiB; --max-document-mib raises the limit (and the "
                                 "memory)",
                                 options_.max_document >> 20));
}

void ChunkEncoder::EncodeJsonLines(const Chunk& chunk, EncodedChunk& out) {
  LineSplitter lines(chunk);
  for (Line line; lines.Next(line);) {
    out.characters += static_cast<int64_t>(CountCharacters(line.text)) + 1;
    const int64_t index = chunk.first_index + line.number - chunk.first_line;
    if (const auto problem = FindNoObject(line.text)) {
      Refuse({chunk.file, line.number, problem->column, problem->what()}, out);
      continue;
    }
    try {
      CheckSize(line.text);
      // The chunk is ours to overwrite, and holds the line.
      const std::span<char> bytes(const_cast<char*>(line.text.data()), line.text.size());
      AddDocument(options_.partitioning.PartOf(index), ReadJsonLine(bytes, options_.json_keys),
                  out);
    } catch (const LineError& error) {
      Refuse({chunk.file, line.number, error.column, error.what()}, out);
    }
  }
}

// Blocks of lines between blank ones, or single lines.
void ChunkEncoder::EncodeText(const Chunk& chunk, EncodedChunk& out) {
  std::string text;
  int64_t first = 0;
  std::optional<LineError> problem;
  int64_t problem_line = 0;
  const auto flush = [&] {
    try {
      if (problem) throw *problem;
      CheckSize(text);
      const Texts texts{{text}, false};
      if (!text.empty()) AddDocument(0, {&texts, 1}, out);
    } catch (const LineError& error) {
      Refuse({chunk.file, problem ? problem_line : first, error.column, error.what()}, out);
    }
    text.clear();
    problem.reset();
  };
  LineSplitter lines(chunk);
  for (Line line; lines.Next(line);) {
    out.characters += static_cast<int64_t>(CountCharacters(line.text)) + 1;
    if (line.text.empty() || options_.format == InputFormat::kLines) flush();
    if (line.text.empty()) continue;
    const size_t valid = tokenizer::ValidUtf8Prefix(line.text);
    if (valid < line.text.size() && !problem) {
      problem.emplace(valid + 1, "not valid UTF-8");
      problem_line = line.number;
    }
    if (text.empty()) {
      first = line.number;
    } else {
      text.push_back('\n');
    }
    text.append(line.text);
  }
  flush();
}

// Byte for byte, with its line breaks.
void ChunkEncoder::EncodeFile(const Chunk& chunk, EncodedChunk& out) {
  const std::string_view text = chunk.bytes.view();
  out.characters += static_cast<int64_t>(CountCharacters(text));
  const size_t valid = tokenizer::ValidUtf8Prefix(text);
  try {
    CheckSize(text);
    if (valid < text.size()) {
      const std::string_view before = text.substr(0, valid);
      const auto line = std::count(before.begin(), before.end(), '\n');
      Refuse({chunk.file, 1 + line, valid - before.rfind('\n'), "not valid UTF-8"}, out);
      return;
    }
    const Texts texts{{text}, false};
    AddDocument(0, {&texts, 1}, out);
  } catch (const LineError& error) {
    Refuse({chunk.file, 1, error.column, error.what()}, out);
  }
}

void ChunkEncoder::AddDocument(int64_t part, std::span<const Texts> texts, EncodedChunk& out) {
  EncodedColumn* const columns = &out.columns[static_cast<size_t>(part) * texts.size()];
  std::vector<EncodedColumn::Mark> before;
  for (size_t i = 0; i < texts.size(); ++i) before.push_back(columns[i].mark());
  try {
    for (size_t i = 0; i < texts.size(); ++i) AddTexts(texts[i], columns[i]);
  } catch (const TokenizerError& error) {
    for (size_t i = 0; i < texts.size(); ++i) columns[i].Restore(before[i], options_.token_type);
    throw LineError(1, error.what());
  }
  ++out.documents;
}

void ChunkEncoder::AddTexts(const Texts& texts, EncodedColumn& column) {
  const size_t first_length = column.lengths.size();
  if (options_.splitter != nullptr && texts.is_list) {
    throw TokenizerError("--split-sentences: a list of texts, which is split already");
  }
  for (const std::string_view text : texts.texts) {
    if (options_.splitter == nullptr) {
      AddSequence(text, column);
      continue;
    }
    sentences_.clear();
    options_.splitter->Split(text, sentences_);
    for (const std::string_view sentence : sentences_) AddSequence(sentence, column);
  }
  const size_t sequences = column.lengths.size() - first_length;
  if (sequences > 0 && eod_ >= 0) {
    column.ids.push_back(eod_);
    ++column.lengths.back();
  }
  column.sequences_per_document.push_back(static_cast<int32_t>(sequences));
}

void ChunkEncoder::AddSequence(std::string_view text, EncodedColumn& column) {
  const int64_t before = column.num_tokens();
  size_t unchecked = column.ids.size();
  encoder_->EncodeInParts(text, column.ids, [&] {
    CheckIds(column, unchecked);
    column.Spill(options_.token_type, options_.spill_folder);
    unchecked = 0;
  });
  CheckIds(column, unchecked);
  if (column.ids.size() >= tokenizer::Encoder::kPartIds) {  // of many texts
    column.Spill(options_.token_type, options_.spill_folder);
  }
  const int64_t length = column.num_tokens() - before;
  if (length == 0) return;
  if (length >= kMaxSequenceTokens) throw TokenizerError("a text of more than 2^31 tokens");
  column.lengths.push_back(static_cast<int32_t>(length));
}

void ChunkEncoder::CheckIds(const EncodedColumn& column, size_t first) const {
  if (options_.token_type != data::TokenType::kUint16) return;
  for (size_t i = first; i < column.ids.size(); ++i) {
    if (column.ids[i] >= 0 && column.ids[i] <= std::numeric_limits<uint16_t>::max()) continue;
    throw TokenizerError(
        fmt::format("token {} does not fit the 16 bits of this vocabulary size", column.ids[i]));
  }
}

}  // namespace muster::tools
