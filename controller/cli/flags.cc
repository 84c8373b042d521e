#include "controller/cli/flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace muster::cli {
namespace {

constexpr size_t kMostNumbers = 65536;

std::vector<std::string_view> SplitAtCommas(std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    const size_t comma = text.find(',');
    items.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

absl::StatusOr<uint64_t> ParseNumber(std::string_view text, uint64_t low, uint64_t high) {
  const bool digits = !text.empty() && text.size() <= 18 &&
                      text.find_first_not_of("0123456789") == std::string_view::npos;
  uint64_t value = 0;
  for (const char c : text) value = digits ? value * 10 + static_cast<uint64_t>(c - '0') : 0;
  if (!digits || value < low || value > high) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a whole number from {} to {}", text, low, high));
  }
  return value;
}

absl::StatusOr<std::vector<uint32_t>> ParseNumberList(std::string_view text) {
  std::vector<uint32_t> numbers;
  for (const std::string_view item : SplitAtCommas(text)) {
    const size_t dash = item.find('-');
    const auto low = ParseNumber(item.substr(0, dash), 0, UINT32_MAX);
    const auto high =
        dash == std::string_view::npos ? low : ParseNumber(item.substr(dash + 1), 0, UINT32_MAX);
    if (!low.ok() || !high.ok() || *high < *low || *high - *low >= kMostNumbers ||
        numbers.size() + (*high - *low) >= kMostNumbers) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' is not a list of ranks such as 0,17 or 0-3,8", text));
    }
    for (uint64_t n = *low; n <= *high; ++n) numbers.push_back(static_cast<uint32_t>(n));
  }
  return numbers;
}

absl::StatusOr<std::vector<std::string>> ParseWordList(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view item : SplitAtCommas(text)) {
    if (item.empty() || item.find_first_of(" \t") != std::string_view::npos) {
      return absl::InvalidArgumentError(
          fmt::format("'{}' has an empty item or a blank; write a,b", text));
    }
    words.emplace_back(item);
  }
  return words;
}

}  // namespace muster::cli
