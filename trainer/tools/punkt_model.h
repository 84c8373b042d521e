#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace muster::tools {

// What NLTK's Punkt learnt of a language: the folder punkt_tab/<language> of its data.
struct PunktModel {
  std::unordered_set<std::string> abbreviations;      // without the period
  std::unordered_set<std::string> collocations;       // two types with a tab between them
  std::unordered_set<std::string> sentence_starters;  // types
  std::unordered_map<std::string, int> contexts;      // type: bits of PunktContext
};

// Where a type was seen, and with which case.
enum PunktContext {
  kBeginUpper = 1 << 1,
  kMiddleUpper = 1 << 2,
  kUnknownUpper = 1 << 3,
  kBeginLower = 1 << 4,
  kMiddleLower = 1 << 5,
  kUnknownLower = 1 << 6,
  kUpper = kBeginUpper | kMiddleUpper | kUnknownUpper,
  kLower = kBeginLower | kMiddleLower | kUnknownLower,
};

// Throws data::DataError with file and line.
PunktModel ReadPunktModel(const std::string& folder);

// The folder of a language: tokenizers/punkt_tab/<language> in $NLTK_DATA (folders with : between
// them) or where NLTK looks else. Throws data::DataError that says how to get it.
std::string FindPunktModel(const std::string& language);

}  // namespace muster::tools
