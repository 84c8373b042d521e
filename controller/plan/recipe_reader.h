#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/plan/toml_value.h"

// Reads a TOML table key by key and collects what is wrong, with positions.

namespace muster::plan {

// What is wrong with a file, in any order of discovery. Not thread-safe.
class Complaints {
 public:
  explicit Complaints(std::string source) : source_(std::move(source)) {}

  void Add(Position at, std::string message);
  // OK, or InvalidArgument with "source:line:column: message" lines in file order, at most 20.
  absl::Status ToStatus() const;

 private:
  std::string source_;
  std::vector<std::pair<Position, std::string>> found_;
};

// One table. Each accessor marks its key as known; Finish() complains about the rest. A key of the
// wrong type is a complaint and counts as absent.
class TableReader {
 public:
  // `name`: "[job]", or "the recipe" for the top level. `table` and `complaints` must outlive the
  // reader.
  TableReader(const TomlValue& table, std::string name, Complaints& complaints)
      : table_(table), name_(std::move(name)), complaints_(complaints) {}

  const TomlEntry* Find(std::string_view key);
  const TomlEntry* FindTable(std::string_view key);
  std::string String(std::string_view key);
  std::vector<std::string> Strings(std::string_view key);
  // A number from `low` to `high`; nothing if absent.
  std::optional<double> Number(std::string_view key, double low, double high);
  // From 1 to 2^32 - 1; 0 if absent.
  uint32_t Count(std::string_view key);
  void Finish();

 private:
  void WrongType(const TomlEntry& entry, std::string_view wanted);

  const TomlValue& table_;
  std::string name_;
  Complaints& complaints_;
  std::vector<std::string> known_;
};

}  // namespace muster::plan
