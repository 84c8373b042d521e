#include "controller/cli/render.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "controller/cli/text.h"

namespace muster::cli {

Style Style::For(int fd) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool wanted = no_colour == nullptr || *no_colour == '\0';
  const bool able = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return Style(wanted && able && isatty(fd) == 1);
}

std::string Style::Rank(unsigned rank, std::string_view text) const {
  static constexpr std::array<const char*, 6> kColours = {"36", "32", "33", "35", "34", "96"};
  return Wrap(kColours[rank % kColours.size()], text);
}

std::string Style::Wrap(const char* sgr, std::string_view text) const {
  if (!colour_) return std::string(text);
  return std::string("\x1b[") + sgr + "m" + std::string(text) + "\x1b[0m";
}

std::string Table::Render(const Style& style) const {
  std::vector<size_t> widths;
  const auto measure = [&](const std::vector<std::string>& row) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  };
  measure(header_);
  for (const auto& row : rows_) measure(row);

  std::string out;
  const auto emit = [&](const std::vector<std::string>& row, bool is_header) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      const bool right = std::find(right_.begin(), right_.end(), i) != right_.end();
      if (i > 0) line.append("  ");
      if (right) line.append(padding);
      line.append(is_header ? style.Bold(row[i]) : row[i]);
      if (!right && i + 1 < row.size()) line.append(padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out.append(line).push_back('\n');
  };
  emit(header_, true);
  for (const auto& row : rows_) emit(row, false);
  return out;
}

}  // namespace muster::cli
