#include "controller/plan/text_table.h"

#include <absl/strings/str_join.h>
#include <fmt/format.h>

#include <algorithm>

namespace muster::plan {

std::string TextTable(const std::vector<Row>& rows, size_t left) {
  std::vector<size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      line += c < left ? fmt::format("{:<{}}", row[c], widths[c])
                       : fmt::format("{:>{}}", row[c], widths[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string NumberRanges(const std::vector<uint32_t>& numbers, std::string_view separator) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!out.empty()) out += separator;
    out += last == i ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[last]);
    i = last + 1;
  }
  return out;
}

std::string RankList(const std::vector<uint32_t>& ranks) {
  constexpr size_t kFew = 8;
  std::string ranges = NumberRanges(ranks);
  if (ranks.size() <= kFew || std::count(ranges.begin(), ranges.end(), ',') < 3) return ranges;
  return fmt::format("{}, {}, {} ... {} ({})", ranks[0], ranks[1], ranks[2], ranks.back(),
                     ranks.size());
}

std::string GiB(double bytes) {
  return fmt::format("{:.1f}", bytes / (1024.0 * 1024.0 * 1024.0));
}

}  // namespace muster::plan
