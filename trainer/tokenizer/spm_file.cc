#include "trainer/tokenizer/spm_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "trainer/tokenizer/hf_decoder.h"
#include "trainer/tokenizer/marker_splitter.h"
#include "trainer/tokenizer/spm_charsmap.h"
#include "trainer/tokenizer/tokenizer.h"
#include "trainer/tokenizer/utf8.h"
#include "trainer/tokenizer/wire_reader.h"

namespace muster::tokenizer {
namespace {

using Field = WireReader::Field;

// Scores add up over a text in single precision and must stay finite.
constexpr float kLargestScore = 1e9F;
constexpr size_t kLongestPiece = 4096;

[[noreturn]] void Fail(size_t offset, const std::string& reason) {
  throw TokenizerError(fmt::format("offset {}: {}", offset, reason));
}

void Expect(const Field& field, int wire_type) {
  if (field.wire_type != wire_type) Fail(field.offset, "a field of another type than in a model");
}

std::string ReadText(const Field& field) {
  Expect(field, 2);
  if (ValidUtf8Prefix(field.bytes) < field.bytes.size()) {
    Fail(field.bytes_offset, "a text that is not valid UTF-8");
  }
  return std::string(field.bytes);
}

// message SentencePiece
SpmPiece ReadPiece(const Field& message) {
  Expect(message, 2);
  SpmPiece piece;
  WireReader reader(message.bytes, message.bytes_offset);
  while (!reader.AtEnd()) {
    const Field field = reader.Next();
    if (field.number == 1) {
      piece.text = ReadText(field);
    } else if (field.number == 2) {
      Expect(field, 5);
      const float score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (!(std::fabs(score) <= kLargestScore)) Fail(field.offset, "a score that is no number");
    } else if (field.number == 3) {
      Expect(field, 0);
      if (field.value < 1 || field.value > 6) Fail(field.offset, "an unknown type of piece");
      piece.type = static_cast<SpmType>(field.value);
    }
  }
  if (piece.text.empty() || piece.text.size() > kLongestPiece ||
      piece.text.find('\0') != std::string::npos) {
    Fail(message.offset, "a piece that is empty, too long, or holds a zero byte");
  }
  if (piece.type == SpmType::kByte && FallbackByte(piece.text) < 0) {
    Fail(message.offset, "a byte piece that names no byte");
  }
  return piece;
}

// message TrainerSpec
void ReadTrainerSpec(const Field& message, SpmFile& file) {
  Expect(message, 2);
  WireReader reader(message.bytes, message.bytes_offset);
  while (!reader.AtEnd()) {
    const Field field = reader.Next();
    switch (field.number) {
      case 3:
        Expect(field, 0);
        if (field.value < 1 || field.value > 4) Fail(field.offset, "an unknown type of model");
        file.is_bpe = field.value == 2;
        break;
      case 24:  // treat_whitespace_as_suffix
        Expect(field, 0);
        if (field.value != 0) file.marks_before_words = false;
        break;
      case 45:
        file.unk_piece = ReadText(field);
        break;
      case 46:
        file.bos_piece = ReadText(field);
        break;
      case 47:
        file.eos_piece = ReadText(field);
        break;
      case 48:
        file.pad_piece = ReadText(field);
        break;
      default:
        break;
    }
  }
}

// message NormalizerSpec
void ReadNormalizerSpec(const Field& message, SpmFile& file) {
  Expect(message, 2);
  WireReader reader(message.bytes, message.bytes_offset);
  while (!reader.AtEnd()) {
    const Field field = reader.Next();
    if (field.number == 2) {
      Expect(field, 2);
      if (CheckCharsmap(field.bytes, field.bytes_offset)) file.marks_before_words = false;
    } else if (field.number == 3 || field.number == 5) {  // add_dummy_prefix, escape_whitespaces
      Expect(field, 0);
      if (field.value == 0) file.marks_before_words = false;
    }
  }
}

void CheckPieces(const std::vector<SpmPiece>& pieces) {
  if (pieces.empty()) throw TokenizerError("no pieces: not a SentencePiece model");
  std::unordered_set<std::string_view> seen;
  int unknowns = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == SpmType::kUnknown) ++unknowns;
    if (!seen.insert(pieces[id].text).second) {
      throw TokenizerError(fmt::format("piece {}: '{}' stands twice", id, pieces[id].text));
    }
  }
  if (unknowns != 1) {
    throw TokenizerError(fmt::format("{} pieces for unknown text; a model has one", unknowns));
  }
}

}  // namespace

SpmFile ReadSpmFile(std::string_view model) {
  SpmFile file;
  WireReader reader(model, 0);
  while (!reader.AtEnd()) {
    const Field field = reader.Next();
    if (field.number == 1) {
      file.pieces.push_back(ReadPiece(field));
    } else if (field.number == 2) {
      ReadTrainerSpec(field, file);
    } else if (field.number == 3 || field.number == 5) {
      ReadNormalizerSpec(field, file);
    }
  }
  CheckPieces(file.pieces);
  return file;
}

int32_t SpmFile::unknown_id() const {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].type == SpmType::kUnknown) return static_cast<int32_t>(id);
  }
  return -1;
}

int32_t SpmFile::IdOf(std::string_view piece) const {
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].text == piece) return static_cast<int32_t>(id);
  }
  return unknown_id();
}

// No piece then lies on both sides of such a space, so no merge and no run of unknown characters
// does; and a normalization that sees the space alone sees the same on each side.
bool SpmFile::CanCutAtSpaces() const {
  const SpmPiece& space = pieces[static_cast<size_t>(IdOf(kSpmSpace))];
  if (!is_bpe || !marks_before_words || space.type != SpmType::kNormal) return false;
  return std::none_of(pieces.begin(), pieces.end(), [](const SpmPiece& piece) {
    return piece.text.find(' ') != std::string::npos || HasInnerMarker(piece.text, kSpmSpace);
  });
}

int32_t SpmFile::ControlId(const std::string& piece) const {
  const int32_t id = IdOf(piece);
  return pieces[static_cast<size_t>(id)].type == SpmType::kControl ? id : -1;
}

}  // namespace muster::tokenizer
