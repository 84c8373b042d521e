#include "controller/plan/toml_value.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
// The parser asserts that a key begins as keys do just before it says that one does not ("[%").
#define TOML_ASSERT(expr) static_assert(true)
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "controller/plan/toml_ascii.h"

namespace muster::plan {
namespace {

Position At(const toml::source_region& region) {
  return {static_cast<uint32_t>(region.begin.line), static_cast<uint32_t>(region.begin.column)};
}

// Depth is bounded by toml++ (256 levels).
TomlValue Convert(const toml::node& node) {
  using Kind = TomlValue::Kind;
  TomlValue out;
  out.at = At(node.source());
  if (const auto* table = node.as_table()) {
    out.kind = Kind::kTable;
    for (const auto& [key, value] : *table) {
      out.entries.push_back({std::string(key.str()), At(key.source()), Convert(value)});
    }
    std::sort(out.entries.begin(), out.entries.end(),
              [](const TomlEntry& a, const TomlEntry& b) { return a.at < b.at; });
  } else if (const auto* array = node.as_array()) {
    out.kind = Kind::kArray;
    for (const auto& item : *array) out.items.push_back(Convert(item));
  } else if (const auto* string = node.as_string()) {
    out.kind = Kind::kString;
    out.text = string->get();
  } else if (const auto* integer = node.as_integer()) {
    out.kind = Kind::kInteger;
    out.integer = integer->get();
    out.text = std::to_string(out.integer);
  } else if (const auto* real = node.as_floating_point()) {
    out.kind = Kind::kFloat;
    out.text = fmt::format("{}", real->get());
  } else if (const auto* boolean = node.as_boolean()) {
    out.kind = Kind::kBoolean;
    out.boolean = boolean->get();
  } else {
    out.kind = Kind::kTime;
  }
  return out;
}

absl::Status ErrorOf(const toml::parse_error& error, const std::string& source) {
  const Position at = At(error.source());
  return absl::InvalidArgumentError(
      fmt::format("{}:{}:{}: {}", source, at.line, at.column, error.description()));
}

}  // namespace

std::string_view KindName(TomlValue::Kind kind) {
  switch (kind) {
    case TomlValue::Kind::kString:
      return "a string";
    case TomlValue::Kind::kInteger:
      return "a whole number";
    case TomlValue::Kind::kFloat:
      return "a number";
    case TomlValue::Kind::kBoolean:
      return "true or false";
    case TomlValue::Kind::kTime:
      return "a date or time";
    case TomlValue::Kind::kArray:
      return "a list";
    case TomlValue::Kind::kTable:
      return "a table";
  }
  return "unknown";
}

absl::StatusOr<TomlValue> ParseToml(std::string_view text, const std::string& source) {
  if (const auto at = FindForeignCharacter(text)) {
    return absl::InvalidArgumentError(
        fmt::format("{}:{}:{}: non-ASCII character outside a string or comment: retype it (a space "
                    "or quote pasted from a document?)",
                    source, at->line, at->column));
  }
  // Refused before the parser meets such a character where it expects none.
  const toml::parse_result ascii = toml::parse(WithoutForeignCharacters(text), source);
  if (!ascii) return ErrorOf(ascii.error(), source);
  const toml::parse_result result = toml::parse(text, source);
  if (!result) return ErrorOf(result.error(), source);
  return Convert(result.table());
}

}  // namespace muster::plan
