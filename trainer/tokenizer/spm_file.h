#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

// What stands for a space in pieces.
inline constexpr std::string_view kSpmSpace = "\u2581";

// SentencePiece's piece types, with their numbers in the file.
enum class SpmType { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct SpmPiece {
  std::string text;
  SpmType type = SpmType::kNormal;
};

// The parts of a SentencePiece model that say how large it is and which ids are special.
struct SpmFile {
  std::vector<SpmPiece> pieces;  // by id
  std::string unk_piece = "<unk>";
  std::string bos_piece = "<s>";
  std::string eos_piece = "</s>";
  std::string pad_piece = "<pad>";
  bool is_bpe = false;
  // A space between words becomes a mark before the next word, and a text begins with such a mark,
  // whatever stands around it.
  bool marks_before_words = true;

  // As the library finds it: the unknown token's id for a piece that is not there.
  int32_t IdOf(std::string_view piece) const;
  int32_t unknown_id() const;
  // -1: the model has none.
  int32_t ControlId(const std::string& piece) const;
  // Whether a text may be cut at any single space between two ASCII letters or digits: the ids of
  // what lies before it, then those of what follows, are those of the text.
  bool CanCutAtSpaces() const;
};

// Reads a model (protobuf) without the library, and checks all that the library takes on trust:
// what is accepted here can't lead it out of its tables. Throws TokenizerError with the byte
// offset.
SpmFile ReadSpmFile(std::string_view model);

}  // namespace muster::tokenizer
