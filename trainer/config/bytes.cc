#include "trainer/config/bytes.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string>

namespace muster::config {
namespace {

// Bytes of a unit in lower case, or 0.
double UnitBytes(const std::string& unit) {
  if (unit.empty() || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "kmgt";
  const size_t power = kPrefixes.find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const auto exponent = static_cast<double>(power + 1);
  const std::string rest = unit.substr(1);
  if (rest.empty() || rest == "ib") return std::pow(1024.0, exponent);
  return rest == "b" ? std::pow(1000.0, exponent) : 0;
}

}  // namespace

std::optional<int64_t> ParseBytes(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  std::string unit(rest, text.data() + text.size());
  unit.erase(0, std::min(unit.find_first_not_of(' '), unit.size()));
  std::transform(unit.begin(), unit.end(), unit.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const double bytes = number * UnitBytes(unit);
  if (UnitBytes(unit) == 0 || !(bytes < std::ldexp(1.0, 62))) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace muster::config
