#include "controller/why/error_lines.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "controller/engine/text.h"

namespace muster::why {
namespace {

constexpr size_t kMaxLine = 400;

bool IsBlank(std::string_view text) {
  return absl::StripAsciiWhitespace(absl::string_view(text.data(), text.size())).empty();
}

// "ValueError: x", "torch.OutOfMemoryError: x", "KeyboardInterrupt": how a traceback ends.
bool EndsTraceback(const std::string& line) {
  size_t end = 0;
  while (end < line.size() && (absl::ascii_isalnum(static_cast<unsigned char>(line[end])) ||
                               line[end] == '_' || line[end] == '.')) {
    ++end;
  }
  if (end == 0 || (end < line.size() && line[end] != ':')) return false;
  const std::string name = line.substr(0, end);
  return absl::EndsWith(name, "Error") || absl::EndsWith(name, "Exception") ||
         absl::EndsWith(name, "Interrupt") || absl::EndsWith(name, "Exit");
}

bool SaysError(const std::string& line) {
  std::string lower = absl::AsciiStrToLower(absl::string_view(line).substr(0, 200));
  // "muster-train: rank 3: data error: ...", "FATAL: ...", "E1129 error: ..."
  for (const char* word : {"error:", "fatal:", "fatal error", "panic:"}) {
    if (absl::StrContains(lower, word)) return true;
  }
  return false;
}

bool TellsWhat(const std::string& line) {
  return absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "what():");
}

}  // namespace

std::vector<std::string> CallStack(const std::string& record, size_t most) {
  const auto json = nlohmann::json::parse(record, nullptr, /*allow_exceptions=*/false);
  const auto pointer = nlohmann::json::json_pointer("/message/extraInfo/py_callstack");
  if (!json.is_object() || !json.contains(pointer) || !json[pointer].is_string()) return {};
  const auto text = json[pointer].get<std::string>();
  std::vector<std::string> lines;
  for (const absl::string_view piece : absl::StrSplit(text, '\n')) {
    const std::string part(piece);
    if (IsBlank(part)) continue;
    lines.push_back(engine::Printable(engine::Shorten(part, kMaxLine)));
  }
  if (lines.size() < 2) return {};
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - static_cast<long>(most));
  return lines;
}

std::string ErrorLine(const std::vector<LogLine>& tail) {
  for (const auto& test : {TellsWhat, EndsTraceback, SaysError}) {
    for (auto line = tail.rbegin(); line != tail.rend(); ++line) {
      if (test(line->text)) return engine::Printable(engine::Shorten(line->text, kMaxLine));
    }
  }
  const LogLine* best = nullptr;
  for (const LogLine& line : tail) {
    if (!IsBlank(line.text) && (best == nullptr || line.err || !best->err)) best = &line;
  }
  // What stands on stdout alone, and says nothing of an error, is no error.
  return best == nullptr || !best->err ? ""
                                       : engine::Printable(engine::Shorten(best->text, kMaxLine));
}

}  // namespace muster::why
