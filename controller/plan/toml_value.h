#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// TOML as plain values with positions, in file order. The one unit behind it is the only one that
// sees toml++.

namespace muster::plan {

struct Position {
  uint32_t line = 0;
  uint32_t column = 0;

  friend bool operator<(const Position& a, const Position& b) {
    return a.line != b.line ? a.line < b.line : a.column < b.column;
  }
};

struct TomlEntry;

struct TomlValue {
  enum class Kind { kString, kInteger, kFloat, kBoolean, kTime, kArray, kTable };

  Kind kind = Kind::kTable;
  Position at;
  std::string
      text;  // of a string; of a number in decimal, so that it reads back as the same number
  int64_t integer = 0;
  bool boolean = false;
  std::vector<TomlValue> items;    // of an array
  std::vector<TomlEntry> entries;  // of a table
};

struct TomlEntry {
  std::string key;
  Position at;
  TomlValue value;
};

// "a string", "a number", ...: what a value is, for messages.
std::string_view KindName(TomlValue::Kind kind);

// The top-level table, or InvalidArgument "source:line:column: message".
absl::StatusOr<TomlValue> ParseToml(std::string_view text, const std::string& source);

}  // namespace muster::plan
