#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

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

  // As the library finds it: the unknown token's id for a piece that is not there.
  int32_t IdOf(std::string_view piece) const;
  int32_t unknown_id() const;
  // -1: the model has none.
  int32_t ControlId(const std::string& piece) const;
};

// Reads a model (protobuf) without the library, and checks all that the library takes on trust:
// what is accepted here can't lead it out of its tables. Throws TokenizerError with the byte
// offset.
SpmFile ReadSpmFile(std::string_view model);

}  // namespace muster::tokenizer
