#include "tests/bench/report.h"

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace muster::bench {

std::optional<Report::Reference> Report::ReferenceOf(const Row& row) const {
  const auto found = references_.find(row.name);
  if (found == references_.end()) return std::nullopt;
  return found->second;
}

void Report::Add(const Row& row) {
  rows_.push_back(row);
  if (json_) return;
  std::printf("%-42s %10.2f %-9s", row.name.c_str(), row.value, row.unit.c_str());
  if (const auto reference = ReferenceOf(row)) {
    std::printf(" %.3f of %s", row.value / reference->value, reference->of.c_str());
  }
  std::printf("  %s\n", row.remark.c_str());
  std::fflush(stdout);
}

void Report::Finish() const {
  if (!json_) return;
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows_) {
    const auto reference = ReferenceOf(row);
    list.push_back({{"name", row.name},
                    {"value", row.value},
                    {"unit", row.unit},
                    {"ratio", reference ? nlohmann::json(row.value / reference->value) : nullptr},
                    {"of", reference ? nlohmann::json(reference->of) : nullptr},
                    {"better", row.higher_is_better ? "higher" : "lower"}});
  }
  std::printf("%s\n", list.dump(1).c_str());
}

std::pair<std::string, Report::Reference> ParseReference(const std::string& text) {
  const size_t first = text.find('=');
  const size_t second = first == std::string::npos ? first : text.find('=', first + 1);
  if (second == std::string::npos) {
    throw std::invalid_argument("--reference takes NAME=VALUE=LABEL, not '" + text + "'");
  }
  const std::string number = text.substr(first + 1, second - first - 1);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !(value > 0)) {
    throw std::invalid_argument("--reference " + text + ": '" + number +
                                "' is not a number above 0");
  }
  return {text.substr(0, first), {value, text.substr(second + 1)}};
}

}  // namespace muster::bench
