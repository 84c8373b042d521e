#include "trainer/tools/encode_chunk.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "trainer/data/data_error.h"
#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/json_line.h"

namespace muster::tools {
namespace {

using tokenizer::TokenizerError;

int64_t CountCharacters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; });
}

}  // namespace

ChunkEncoder::ChunkEncoder(const tokenizer::Tokenizer& tokenizer, const EncodeOptions& options)
    : options_(options), encoder_(tokenizer.NewEncoder()) {
  if (!options.append_eod) return;
  if (!tokenizer.eod()) {
    throw TokenizerError(
        "--append-eod: the tokenizer names no end-of-document token (eos_token in "
        "tokenizer_config.json)");
  }
  eod_ = *tokenizer.eod();
}

void ChunkEncoder::Fail(int64_t line, size_t column, const std::string& reason) const {
  throw data::DataError(fmt::format("{}:{}:{}: {}", options_.input, line, column, reason));
}

EncodedChunk ChunkEncoder::Encode(const Chunk& chunk) {
  EncodedChunk out;
  out.columns.resize(options_.json_keys.size());
  if (options_.format == InputFormat::kJsonl) {
    EncodeJsonLines(chunk, out);
  } else {
    EncodeText(chunk, out);
  }
  return out;
}

void ChunkEncoder::EncodeJsonLines(const Chunk& chunk, EncodedChunk& out) {
  for (const Line& line : SplitLines(chunk)) {
    if ((line.number - 1) % options_.partitions != options_.partition) continue;
    try {
      const std::vector<Texts> texts = ReadJsonLine(line.text, options_.json_keys);
      for (size_t i = 0; i < texts.size(); ++i) AddDocument(texts[i], out.columns[i]);
    } catch (const LineError& error) {
      Fail(line.number, error.column, error.what());
    } catch (const TokenizerError& error) {
      Fail(line.number, 1, error.what());
    }
    ++out.documents;
    out.characters += CountCharacters(line.text) + 1;
  }
}

// Blocks of lines between blank ones, or single lines.
void ChunkEncoder::EncodeText(const Chunk& chunk, EncodedChunk& out) {
  std::string text;
  Line first{0, ""};
  const auto flush = [&] {
    if (!text.empty()) AddText(first, text, out);
    text.clear();
  };
  for (const Line& line : SplitLines(chunk)) {
    const size_t valid = tokenizer::ValidUtf8Prefix(line.text);
    if (valid < line.text.size()) Fail(line.number, valid + 1, "not valid UTF-8");
    out.characters += CountCharacters(line.text) + 1;
    if (line.text.empty() || options_.format == InputFormat::kLines) flush();
    if (line.text.empty()) continue;
    if (text.empty()) {
      first = line;
    } else {
      text.push_back('\n');
    }
    text.append(line.text);
  }
  flush();
}

void ChunkEncoder::AddText(const Line& line, const std::string& text, EncodedChunk& out) {
  try {
    AddDocument({text}, out.columns[0]);
  } catch (const TokenizerError& error) {
    Fail(line.number, 1, error.what());
  }
  ++out.documents;
}

void ChunkEncoder::AddDocument(const std::vector<std::string>& texts, EncodedColumn& column) {
  int32_t sequences = 0;
  ids_.clear();
  size_t counted = 0;
  for (const std::string& text : texts) {
    encoder_->Encode(text, ids_);
    const size_t length = ids_.size() - counted;
    if (length == 0) continue;
    if (ids_.size() >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
      throw TokenizerError("the document has more than 2^31 tokens");
    }
    column.lengths.push_back(static_cast<int32_t>(length));
    ++sequences;
    counted = ids_.size();
  }
  if (!ids_.empty() && eod_ >= 0) {
    ids_.push_back(eod_);
    ++column.lengths.back();
  }
  column.sequences_per_document.push_back(sequences);
  AppendTokens(column);
}

void ChunkEncoder::AppendTokens(EncodedColumn& column) {
  const size_t before = column.tokens.size();
  if (options_.token_type == data::TokenType::kInt32) {
    column.tokens.resize(before + ids_.size() * sizeof(int32_t));
    std::memcpy(column.tokens.data() + before, ids_.data(), ids_.size() * sizeof(int32_t));
    return;
  }
  column.tokens.resize(before + ids_.size() * sizeof(uint16_t));
  for (size_t i = 0; i < ids_.size(); ++i) {
    if (ids_[i] < 0 || ids_[i] > std::numeric_limits<uint16_t>::max()) {
      throw TokenizerError(
          fmt::format("token {} does not fit the 16 bits of this vocabulary size", ids_[i]));
    }
    const auto narrow = static_cast<uint16_t>(ids_[i]);
    std::memcpy(column.tokens.data() + before + i * sizeof(narrow), &narrow, sizeof(narrow));
  }
}

}  // namespace muster::tools
