#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Values of flags: text -> value, or what is wrong with it. Pure.

namespace muster::cli {

// Decimal digits only, from `low` to `high`.
absl::StatusOr<uint64_t> ParseNumber(std::string_view text, uint64_t low, uint64_t high);

// "0,17" or "0-3,8": numbers and ascending ranges, in the order given, at most 65536 of them.
absl::StatusOr<std::vector<uint32_t>> ParseNumberList(std::string_view text);

// "a,b": words without blanks; no empty ones.
absl::StatusOr<std::vector<std::string>> ParseWordList(std::string_view text);

}  // namespace muster::cli
