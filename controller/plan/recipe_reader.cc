#include "controller/plan/recipe_reader.h"

#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "common/suggest.h"

namespace muster::plan {

void Complaints::Add(Position at, std::string message) {
  found_.emplace_back(at, std::move(message));
}

absl::Status Complaints::ToStatus() const {
  if (found_.empty()) return absl::OkStatus();
  constexpr size_t kMax = 20;
  auto sorted = found_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  sorted.resize(std::min(sorted.size(), kMax));
  std::string out;
  for (const auto& [at, message] : sorted) {
    out += fmt::format("{}{}:{}:{}: {}", out.empty() ? "" : "\n", source_, at.line, at.column,
                       message);
  }
  return absl::InvalidArgumentError(out);
}

const TomlEntry* TableReader::Find(std::string_view key) {
  known_.emplace_back(key);
  const auto it = std::find_if(table_.entries.begin(), table_.entries.end(),
                               [&](const TomlEntry& entry) { return entry.key == key; });
  return it == table_.entries.end() ? nullptr : &*it;
}

void TableReader::WrongType(const TomlEntry& entry, std::string_view wanted) {
  complaints_.Add(entry.value.at, fmt::format("{} must be {}, not {}", entry.key, wanted,
                                              KindName(entry.value.kind)));
}

const TomlEntry* TableReader::FindTable(std::string_view key) {
  const TomlEntry* entry = Find(key);
  if (entry == nullptr || entry->value.kind == TomlValue::Kind::kTable) return entry;
  WrongType(*entry, fmt::format("a table: [{}]", key));
  return nullptr;
}

std::string TableReader::String(std::string_view key) {
  const TomlEntry* entry = Find(key);
  if (entry == nullptr) return "";
  if (entry->value.kind != TomlValue::Kind::kString) {
    WrongType(*entry, "a string");
    return "";
  }
  if (entry->value.text.empty()) {
    complaints_.Add(entry->value.at, fmt::format("{} is empty; leave the key out", entry->key));
  }
  return entry->value.text;
}

std::vector<std::string> TableReader::Strings(std::string_view key) {
  std::vector<std::string> out;
  const TomlEntry* entry = Find(key);
  if (entry == nullptr) return out;
  if (entry->value.kind != TomlValue::Kind::kArray) {
    WrongType(*entry, fmt::format("a list of strings: {} = [\"...\", \"...\"]", key));
    return out;
  }
  for (const TomlValue& item : entry->value.items) {
    if (item.kind != TomlValue::Kind::kString) {
      complaints_.Add(item.at, fmt::format("{} must be a list of strings; this is {}", key,
                                           KindName(item.kind)));
      return {};
    }
    out.push_back(item.text);
  }
  return out;
}

std::optional<double> TableReader::Number(std::string_view key, double low, double high) {
  const TomlEntry* entry = Find(key);
  if (entry == nullptr) return std::nullopt;
  const TomlValue& value = entry->value;
  double number = 0;
  if ((value.kind != TomlValue::Kind::kInteger && value.kind != TomlValue::Kind::kFloat) ||
      !absl::SimpleAtod(value.text, &number)) {
    WrongType(*entry, "a number");
    return std::nullopt;
  }
  if (!(number >= low && number <= high)) {
    complaints_.Add(value.at, fmt::format("{} must be a number from {} to {}, not {}", key, low,
                                          high, value.text));
    return std::nullopt;
  }
  return number;
}

uint32_t TableReader::Count(std::string_view key) {
  const TomlEntry* entry = Find(key);
  if (entry == nullptr) return 0;
  if (entry->value.kind != TomlValue::Kind::kInteger) {
    WrongType(*entry, "a whole number");
    return 0;
  }
  const int64_t value = entry->value.integer;
  if (value < 1 || value > std::numeric_limits<uint32_t>::max()) {
    complaints_.Add(entry->value.at,
                    fmt::format("{} must be a whole number from 1, not {}", entry->key, value));
    return 0;
  }
  return static_cast<uint32_t>(value);
}

void TableReader::Finish() {
  for (const TomlEntry& entry : table_.entries) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    complaints_.Add(entry.at,
                    fmt::format("unknown {} '{}' in {}{}",
                                entry.value.kind == TomlValue::Kind::kTable ? "table" : "key",
                                entry.key, name_, DidYouMean(entry.key, known_)));
  }
}

}  // namespace muster::plan
