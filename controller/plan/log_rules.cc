#include "controller/plan/log_rules.h"

#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "common/status.h"
#include "common/suggest.h"

namespace muster::plan {
namespace {

constexpr uint64_t kDefaultQuota = uint64_t{1} << 30;
constexpr uint64_t kDefaultRotate = uint64_t{1} << 30;
// Less would make a marker of each line.
constexpr uint64_t kLeastQuota = 64 << 10;
constexpr uint64_t kLeastRotate = 64 << 10;
constexpr char kBlock[] = "block";
constexpr char kDrop[] = "drop-oldest-with-marker";

struct Unit {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array kUnits = {Unit{"", 1},
                               Unit{"B", 1},
                               Unit{"KiB", 1ULL << 10},
                               Unit{"MiB", 1ULL << 20},
                               Unit{"GiB", 1ULL << 30},
                               Unit{"TiB", 1ULL << 40},
                               Unit{"kB", 1'000},
                               Unit{"KB", 1'000},
                               Unit{"MB", 1'000'000},
                               Unit{"GB", 1'000'000'000},
                               Unit{"TB", 1'000'000'000'000}};

absl::StatusOr<uint64_t> SizeOr(std::string_view text, std::string_view none, uint64_t least) {
  if (text == none) return 0;
  const auto size = ParseByteSize(text);
  if (!size.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("{}, or \"{}\"", std::string(size.status().message()), none));
  }
  if (*size < least) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is too little: at least {} KiB, or \"{}\"", text, least >> 10, none));
  }
  return *size;
}

absl::Status SetQuota(std::string_view text, v1::LogRules& out) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, SizeOr(text, "none", kLeastQuota));
  out.mutable_quota()->set_bytes(bytes);
  return absl::OkStatus();
}

absl::Status SetPolicy(std::string_view text, v1::LogRules& out) {
  if (text != kBlock && text != kDrop) {
    return absl::InvalidArgumentError(fmt::format("'{}': {} or {}{}", text, kBlock, kDrop,
                                                  DidYouMean(std::string(text), {kBlock, kDrop})));
  }
  out.mutable_quota()->set_drop_oldest(text == kDrop);
  return absl::OkStatus();
}

absl::Status SetRotate(std::string_view text, v1::LogRules& out) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, SizeOr(text, "never", kLeastRotate));
  out.set_rotate_bytes(bytes);
  return absl::OkStatus();
}

absl::Status SetKeep(std::string_view text, v1::LogRules& out) {
  out.clear_keep_for();
  if (text == "forever") return absl::OkStatus();
  double count = 0;
  const size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  const double seconds = unit == "d" ? 86400 : unit == "h" ? 3600 : unit == "m" ? 60 : 0;
  const std::string number(text.substr(0, digits));
  if (seconds == 0 || !absl::SimpleAtod(number, &count) || count <= 0 || count > 1e6) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a time such as 30d, 12h or 90m, or \"forever\"", text));
  }
  out.mutable_keep_for()->set_seconds(static_cast<int64_t>(count * seconds));
  return absl::OkStatus();
}

absl::Status SetKeepSize(std::string_view text, v1::LogRules& out) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t bytes, SizeOr(text, "all", 1));
  out.set_keep_bytes(bytes);
  return absl::OkStatus();
}

struct Key {
  std::string_view name;
  std::optional<std::string> LogWords::*word;
  absl::Status (*set)(std::string_view, v1::LogRules&);
};
constexpr std::array kKeys = {
    Key{"quota", &LogWords::quota, SetQuota}, Key{"policy", &LogWords::policy, SetPolicy},
    Key{"rotate", &LogWords::rotate, SetRotate}, Key{"keep", &LogWords::keep, SetKeep},
    Key{"keep_size", &LogWords::keep_size, SetKeepSize}};

}  // namespace

absl::StatusOr<uint64_t> ParseByteSize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  double count = 0;
  for (const Unit& unit : kUnits) {
    if (text.substr(digits) != unit.name) continue;
    if (!absl::SimpleAtod(std::string(text.substr(0, digits)), &count)) break;
    const double bytes = count * static_cast<double>(unit.bytes);
    if (bytes >= 1 && bytes < 9e18) return static_cast<uint64_t>(std::llround(bytes));
    break;
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is not a size such as 64KiB, 256MiB or 1GiB", text));
}

LogWords ReadLogs(const TomlEntry& table, Complaints& complaints) {
  TableReader reader(table.value, "[logs]", complaints);
  LogWords words;
  v1::LogRules ignored;
  for (const Key& key : kKeys) {
    const TomlEntry* entry = reader.Find(key.name);
    if (entry == nullptr) continue;
    const bool text = entry->value.kind == TomlValue::Kind::kString ||
                      entry->value.kind == TomlValue::Kind::kInteger;
    if (!text) {
      complaints.Add(entry->value.at, fmt::format("{} must be a string, not {}", key.name,
                                                  KindName(entry->value.kind)));
    } else if (const absl::Status status = key.set(entry->value.text, ignored); !status.ok()) {
      complaints.Add(entry->value.at,
                     fmt::format("{}: {}", key.name, std::string(status.message())));
    } else {
      words.*key.word = entry->value.text;
    }
  }
  reader.Finish();
  return words;
}

absl::StatusOr<v1::LogRules> MakeLogRules(const LogWords& recipe, const LogWords& flags) {
  v1::LogRules rules;
  rules.mutable_quota()->set_bytes(kDefaultQuota);
  rules.set_rotate_bytes(kDefaultRotate);
  for (const LogWords* words : {&recipe, &flags}) {
    for (const Key& key : kKeys) {
      const auto& word = words->*key.word;
      if (!word) continue;
      if (const absl::Status status = key.set(*word, rules); !status.ok()) {
        std::string flag = fmt::format("--log-{}", key.name);
        for (char& c : flag) c = c == '_' ? '-' : c;
        return Annotate(status, flag);
      }
    }
  }
  if (rules.quota().bytes() == 0) rules.clear_quota();
  return rules;
}

}  // namespace muster::plan
