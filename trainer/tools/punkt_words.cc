#include "trainer/tools/punkt_words.h"

#include <algorithm>

#include "trainer/tools/text_class.h"

namespace muster::tools {
namespace {

constexpr char kNumber[] = "##number##";

int ContextOf(const PunktModel& model, const std::string& type) {
  const auto found = model.contexts.find(type);
  return found == model.contexts.end() ? 0 : found->second;
}

// Two or more hyphens or periods, or three or more periods with one space between them: bytes of
// that mark at `at`, or 0.
size_t MarkSize(std::string_view line, size_t at) {
  const char c = line[at];
  if (c != '-' && c != '.') return 0;
  size_t end = at;
  while (end < line.size() && line[end] == c) ++end;
  if (end - at >= 2) return end - at;
  if (c == '-') return 0;
  int periods = 1;
  end = at + 1;
  while (end < line.size()) {
    const Character space = CharacterAt(line, end);
    const size_t next = end + space.size;
    if (!IsSpace(space.code) || next >= line.size() || line[next] != '.') break;
    end = next + 1;
    ++periods;
  }
  return periods >= 3 ? end - at : 0;
}

bool CanStartWord(int32_t code) {
  constexpr std::string_view kNot = "(\"`{[:;&#*@)}]-,";
  return code >= 0x80 || kNot.find(static_cast<char>(code)) == std::string_view::npos;
}

// Whether a word ends before `at`: white space, the end, or a mark that is no part of words.
bool EndsBefore(std::string_view line, size_t at) {
  if (at == line.size()) return true;
  const int32_t code = CharacterAt(line, at).code;
  return IsSpace(code) || IsPunktNonWord(code) || MarkSize(line, at) > 0;
}

// End of the word or mark that starts at `at`, which is no white space.
size_t TokenEnd(std::string_view line, size_t at) {
  if (const size_t size = MarkSize(line, at); size > 0) return at + size;
  const Character first = CharacterAt(line, at);
  size_t end = at + first.size;
  if (!CanStartWord(first.code)) return end;
  while (!EndsBefore(line, end) && !(line[end] == ',' && EndsBefore(line, end + 1))) {
    end += CharacterAt(line, end).size;
  }
  return end;
}

void AddTokens(std::string_view line, std::vector<PunktToken>& tokens) {
  for (size_t at = 0; at < line.size();) {
    const Character c = CharacterAt(line, at);
    if (IsSpace(c.code)) {
      at += c.size;
      continue;
    }
    const size_t end = TokenEnd(line, at);
    tokens.emplace_back(line.substr(at, end - at));
    at = end;
  }
}

// By the word alone.
void AnnotateFirst(PunktToken& token, const PunktModel& model) {
  const std::string_view text = token.text;
  if (text == "." || text == "?" || text == "!") {
    token.sentence_break = true;
  } else if (text.size() >= 2 && text.find_first_not_of('.') == std::string_view::npos) {
    token.ellipsis = true;
  } else if (token.period_final && !text.ends_with("..")) {
    const std::string word = ToLower(text.substr(0, text.size() - 1));
    const std::string last_part = word.substr(word.rfind('-') + 1);
    token.abbreviation =
        model.abbreviations.contains(word) || model.abbreviations.contains(last_part);
    token.sentence_break = !token.abbreviation;
  }
}

enum class Starts { kNo, kYes, kUnknown };

// Whether `token` starts a sentence, by where and how its type was seen.
Starts StartsSentence(const PunktToken& token, const PunktModel& model) {
  constexpr std::string_view kMarks = ";:,.!?";
  if (token.text.size() == 1 && kMarks.find(token.text[0]) != std::string_view::npos) {
    return Starts::kNo;
  }
  const int context = ContextOf(model, token.TypeInSentence());
  if (token.StartsUpper() && (context & kLower) != 0 && (context & kMiddleUpper) == 0) {
    return Starts::kYes;
  }
  if (token.StartsLower() && ((context & kUpper) != 0 || (context & kBeginLower) == 0)) {
    return Starts::kNo;
  }
  return Starts::kUnknown;
}

// By the word after it.
void AnnotateSecond(PunktToken& token, const PunktToken& next, const PunktModel& model) {
  if (!token.period_final) return;
  const std::string type = token.TypeWithoutPeriod();
  const std::string next_type = next.TypeInSentence();
  const bool is_initial = token.IsInitial();
  const auto no_break = [&token] {
    token.sentence_break = false;
    token.abbreviation = true;
  };
  if (model.collocations.contains(type + "\t" + next_type)) return no_break();
  if ((token.abbreviation || token.ellipsis) && !is_initial) {
    if (StartsSentence(next, model) == Starts::kYes ||
        (next.StartsUpper() && model.sentence_starters.contains(next_type))) {
      token.sentence_break = true;
      return;
    }
  }
  if (!is_initial && type != kNumber) return;
  const Starts starts = StartsSentence(next, model);
  if (starts == Starts::kNo) return no_break();
  const bool never_lower = (ContextOf(model, next_type) & kLower) == 0;
  if (starts == Starts::kUnknown && is_initial && next.StartsUpper() && never_lower) no_break();
}

// -?[.,]?\d[\d,.-]*
bool IsNumber(std::string_view text) {
  size_t at = text.starts_with('-') ? 1 : 0;
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) ++at;
  if (at == text.size() || !IsDecimal(CharacterAt(text, at).code)) return false;
  while (at < text.size()) {
    const Character c = CharacterAt(text, at);
    if (!IsDecimal(c.code) && c.code != ',' && c.code != '.' && c.code != '-') return false;
    at += c.size;
  }
  return true;
}

}  // namespace

bool IsPunktNonWord(int32_t code) {
  constexpr std::string_view kAscii = ")\";}]*:@'({[?!";
  if (code < 0x80) return kAscii.find(static_cast<char>(code)) != std::string_view::npos;
  return code == 0x2018 || code == 0x2019 || code == 0x201c || code == 0x201d || code == 0xab ||
         code == 0xbb;
}

PunktToken::PunktToken(std::string_view word)
    : text(word), type(ToLower(word)), period_final(word.ends_with('.')) {
  if (IsNumber(type)) type = kNumber;
}

std::string PunktToken::TypeWithoutPeriod() const {
  return type.size() > 1 && type.back() == '.' ? type.substr(0, type.size() - 1) : type;
}

std::string PunktToken::TypeInSentence() const {
  return sentence_break ? TypeWithoutPeriod() : type;
}

bool PunktToken::IsInitial() const {
  const Character first = CharacterAt(text, 0);
  return text.size() == first.size + 1 && text.back() == '.' && IsLetter(first.code);
}

bool PunktToken::StartsUpper() const {
  return IsUpper(CharacterAt(text, 0).code);
}

bool PunktToken::StartsLower() const {
  return IsLower(CharacterAt(text, 0).code);
}

std::vector<PunktToken> AnnotateWords(std::string_view text, const PunktModel& model) {
  std::vector<PunktToken> tokens;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (!IsBlank(line)) AddTokens(line, tokens);
    at = end + 1;
  }
  for (PunktToken& token : tokens) AnnotateFirst(token, model);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) AnnotateSecond(tokens[i], tokens[i + 1], model);
  return tokens;
}

}  // namespace muster::tools
