#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trainer/tools/punkt_model.h"

namespace muster::tools {

// Whether a word of Punkt's patterns can't hold this character: quotes, brackets, ? and ! and such.
bool IsPunktNonWord(int32_t code);

// A word or a punctuation mark.
struct PunktToken {
  explicit PunktToken(std::string_view text);

  std::string_view text;
  std::string type;  // in lower case; ##number## for numbers
  bool period_final = false;
  bool sentence_break = false;
  bool abbreviation = false;
  bool ellipsis = false;

  std::string TypeWithoutPeriod() const;
  // The type, without its period where that ends a sentence.
  std::string TypeInSentence() const;
  bool IsInitial() const;  // "J."
  bool StartsUpper() const;
  bool StartsLower() const;
};

// The words of `text`, line by line, each marked as sentence break, abbreviation or ellipsis by
// what it is and by the word after it: Punkt's two passes.
std::vector<PunktToken> AnnotateWords(std::string_view text, const PunktModel& model);

}  // namespace muster::tools
