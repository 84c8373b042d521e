#include "trainer/tools/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trainer/tokenizer/utf8.h"
#include "trainer/tools/json_scanner.h"

namespace muster::tools {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kSpace = " \t\n\r";  // JSON's
// Of one list: what notes them all must fit in memory.
constexpr size_t kMaxTexts = size_t{1} << 22;

// What stands under a key, until a later one of the same name replaces it.
struct Found {
  bool present = false;
  std::string problem;  // why the value can't be used
  Texts texts;
};

void CheckEncoding(std::string_view line) {
  const size_t valid = tokenizer::ValidUtf8Prefix(line);
  if (valid < line.size()) throw LineError(valid + 1, "not valid UTF-8");
  if (line.starts_with(kByteOrderMark)) {
    throw LineError(1, "a byte order mark; save the file as UTF-8 without one");
  }
}

constexpr std::string_view kEmptyLine = "an empty line";
constexpr std::string_view kNoObject = "expected an object, such as {\"text\": \"...\"}";

void ReadText(JsonScanner& scanner, Found& found) {
  const JsonScanner::String text = scanner.ReadString();
  if (!text.whole) found.problem = "the text holds half of a surrogate pair";
  found.texts.texts.push_back(text.text);
}

void ReadList(JsonScanner& scanner, Found& found) {
  found.texts.is_list = true;
  scanner.Expect('[', "a list");
  scanner.SkipSpace();
  if (scanner.Take(']')) return;
  do {
    scanner.SkipSpace();
    if (scanner.Peek() == '"') {
      if (found.texts.texts.size() == kMaxTexts) {
        scanner.Fail(
            fmt::format("a list of more than {} texts; cut it into several lines", kMaxTexts));
      }
      ReadText(scanner, found);
    } else {
      scanner.SkipValue();
      found.problem = "the list holds something other than a text";
    }
    scanner.SkipSpace();
  } while (scanner.Take(','));
  scanner.Expect(']', "',' or ']'");
}

Found ReadFound(JsonScanner& scanner) {
  Found found;
  found.present = true;
  if (scanner.Peek() == '"') {
    ReadText(scanner, found);
  } else if (scanner.Peek() == '[') {
    ReadList(scanner, found);
  } else {
    scanner.SkipValue();
    found.problem = "the value is neither a text nor a list of texts";
  }
  return found;
}

}  // namespace

std::optional<LineError> FindNoObject(std::string_view line) {
  const size_t at = line.find_first_not_of(kSpace);
  if (at == std::string_view::npos) return LineError(line.size() + 1, std::string(kEmptyLine));
  const bool other = line[at] != '{' && !line.starts_with(kByteOrderMark) &&
                     tokenizer::ValidUtf8Prefix(line) == line.size();
  if (other) return LineError(at + 1, std::string(kNoObject));
  return std::nullopt;
}

std::vector<Texts> ReadJsonLine(std::span<char> line, const std::vector<std::string>& keys) {
  CheckEncoding({line.data(), line.size()});
  JsonScanner scanner(line.data(), line.size());
  scanner.SkipSpace();
  if (scanner.AtEnd()) scanner.Fail(std::string(kEmptyLine));
  if (scanner.Peek() != '{') scanner.Fail(std::string(kNoObject));
  scanner.Take('{');
  std::vector<Found> found(keys.size());
  scanner.SkipSpace();
  if (!scanner.Take('}')) {
    do {
      scanner.SkipSpace();
      if (scanner.Peek() != '"') scanner.Fail("expected a name in double quotes");
      const std::string_view name = scanner.ReadString().text;
      scanner.SkipSpace();
      scanner.Expect(':', "':' after the name");
      scanner.SkipSpace();
      const auto key = std::find(keys.begin(), keys.end(), name);
      if (key == keys.end()) {
        scanner.SkipValue();
      } else {
        found[static_cast<size_t>(key - keys.begin())] = ReadFound(scanner);
      }
      scanner.SkipSpace();
    } while (scanner.Take(','));
    scanner.Expect('}', "',' or '}'");
  }
  scanner.SkipSpace();
  if (!scanner.AtEnd()) scanner.Fail("something follows the object");
  std::vector<Texts> texts;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!found[i].present) throw LineError(1, "no key \"" + keys[i] + "\"");
    if (!found[i].problem.empty()) {
      throw LineError(1, "key \"" + keys[i] + "\": " + found[i].problem);
    }
    texts.push_back(std::move(found[i].texts));
  }
  return texts;
}

std::string ReadJsonString(std::string_view line) {
  CheckEncoding(line);
  std::string decoded(line);
  JsonScanner scanner(decoded.data(), decoded.size());
  scanner.SkipSpace();
  const JsonScanner::String text = scanner.ReadString();
  if (!text.whole) scanner.Fail("the text holds half of a surrogate pair");
  scanner.SkipSpace();
  if (!scanner.AtEnd()) scanner.Fail("something follows the string");
  return std::string(text.text);
}

}  // namespace muster::tools
