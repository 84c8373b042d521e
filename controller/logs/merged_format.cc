#include "controller/logs/merged_format.h"

#include <charconv>

namespace muster::logs {
namespace {

constexpr std::string_view kOut = "out";
constexpr std::string_view kErr = "err";
// What follows the rank: " out | ".
constexpr size_t kTagTail = 7;

}  // namespace

void AppendMergedLine(const MergedLine& line, int width, std::string& out) {
  const std::string rank = std::to_string(line.rank);
  const auto wide = static_cast<size_t>(width);
  if (rank.size() < wide) out.append(wide - rank.size(), ' ');
  out += rank;
  out += ' ';
  out += line.stream == v1::STREAM_STDERR ? kErr : kOut;
  out += line.cut ? " + " : " | ";
  out += line.text;
  out += '\n';
}

std::optional<MergedLine> ParseMergedLine(std::string_view line, int width) {
  const auto wide = static_cast<size_t>(width);
  if (line.size() < wide + kTagTail) return std::nullopt;
  const size_t first = line.find_first_not_of(' ');
  if (first >= wide) return std::nullopt;
  MergedLine parsed;
  const auto [end, error] = std::from_chars(line.data() + first, line.data() + wide, parsed.rank);
  if (error != std::errc() || end != line.data() + wide) return std::nullopt;
  const std::string_view tag = line.substr(wide, kTagTail);
  const std::string_view name = tag.substr(1, 3);
  if (tag[0] != ' ' || tag[4] != ' ' || tag[6] != ' ') return std::nullopt;
  if (name != kOut && name != kErr) return std::nullopt;
  if (tag[5] != '|' && tag[5] != '+') return std::nullopt;
  parsed.stream = name == kErr ? v1::STREAM_STDERR : v1::STREAM_STDOUT;
  parsed.cut = tag[5] == '+';
  parsed.text = line.substr(wide + kTagTail);
  if (parsed.text.size() > kMaxMergedLine) return std::nullopt;
  return parsed;
}

size_t AppendMergedLines(std::string_view data, bool ended, MergedLine tag, int width,
                         std::string& out) {
  size_t taken = 0;
  while (taken < data.size()) {
    const std::string_view rest = data.substr(taken);
    const size_t newline = rest.substr(0, kMaxMergedLine + 1).find('\n');
    tag.cut = newline == std::string_view::npos;
    if (!tag.cut) {
      tag.text = rest.substr(0, newline);
    } else if (rest.size() >= kMaxMergedLine) {
      tag.text = rest.substr(0, kMaxMergedLine);
    } else if (ended) {
      tag.text = rest;
    } else {
      break;
    }
    AppendMergedLine(tag, width, out);
    taken += StreamBytes(tag);
  }
  return taken;
}

}  // namespace muster::logs
