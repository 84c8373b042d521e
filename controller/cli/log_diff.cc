#include "controller/cli/log_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"
#include "controller/plan/text_table.h"

namespace muster::cli {
namespace {

constexpr size_t kMaxExample = 160;
constexpr size_t kMaxShown = 20;  // lines of a group
// Of a longer line, only its beginning says of which kind it is.
constexpr size_t kMaxMasked = 4096;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The end of the number that begins at `at`; `at` itself when none does.
size_t NumberEnd(std::string_view text, size_t at) {
  size_t end = at;
  if (text.substr(at, 2) == "0x" || text.substr(at, 2) == "0X") {
    end = at + 2;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    return end;
  }
  while (end < text.size() && (IsDigit(text[end]) || (text[end] == '.' && end + 1 < text.size() &&
                                                      IsDigit(text[end + 1])))) {
    ++end;
  }
  if (end == at) return at;
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    size_t after = digits;
    while (after < text.size() && IsDigit(text[after])) ++after;
    if (after > digits) end = after;
  }
  return end;
}

std::string_view LastState(std::string_view line) {
  const size_t end = line.find_last_not_of('\r');
  if (end == std::string_view::npos) return {};
  line = line.substr(0, end + 1);
  const size_t cr = line.rfind('\r');
  return cr == std::string_view::npos ? line : line.substr(cr + 1);
}

}  // namespace

std::string MaskLine(std::string_view line, std::string_view host) {
  line = LastState(line).substr(0, kMaxMasked);
  std::string out;
  for (size_t at = 0; at < line.size();) {
    if (!host.empty() && line.substr(at, host.size()) == host) {
      out += "<host>";
      at += host.size();
      continue;
    }
    const char c = line[at];
    const bool in_word = at > 0 && IsWord(line[at - 1]);
    const bool sign =
        (c == '-' || c == '+') && !in_word && at + 1 < line.size() && IsDigit(line[at + 1]);
    const size_t end = NumberEnd(line, at + (sign ? 1 : 0));
    if (end > at + (sign ? 1 : 0)) {
      out += '#';
      at = end;
    } else {
      out += c;
      ++at;
    }
  }
  // Aligned numbers bring more or fewer blanks.
  out.erase(
      std::unique(out.begin(), out.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
      out.end());
  return out;
}

void LogDiff::Add(const LogLine& line) {
  RankLines& rank = ranks_[line.rank];
  if (rank.host.empty()) rank.host = std::string(line.host);
  ++rank.lines;
  std::string masked = MaskLine(line.text, line.host);
  masked += line.stream == v1::STREAM_STDERR ? "\n2" : "\n1";
  auto known = numbers_.find(masked);
  if (known == numbers_.end()) {
    if (kinds_.size() == kMaxKinds) {
      ++not_compared_;
      return;
    }
    known = numbers_.emplace(std::move(masked), static_cast<uint32_t>(kinds_.size())).first;
    const std::string example = EscapeForDisplay(LastState(line.text).substr(0, kMaxExample));
    kinds_.push_back({line.stream, example});
  }
  const auto count = rank.counts.find(known->second);
  if (count != rank.counts.end()) {
    ++count->second;
  } else if (num_counts_ == kMaxCounts) {
    ++not_compared_;
  } else {
    rank.counts.emplace(known->second, 1);
    ++num_counts_;
  }
}

std::vector<LogDiff::Group> LogDiff::Groups() const {
  std::map<std::vector<std::pair<uint32_t, uint64_t>>, Group> by_counts;
  for (const auto& [rank, lines] : ranks_) {
    Group& group = by_counts[{lines.counts.begin(), lines.counts.end()}];
    if (group.ranks.empty()) {
      group.host = lines.host;
      group.lines = lines.lines;
    }
    group.ranks.push_back(rank);
  }
  std::vector<Group> groups;
  for (auto& [counts, group] : by_counts) groups.push_back(std::move(group));
  std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() < b.ranks.size()
                                            : a.ranks[0] > b.ranks[0];
  });
  if (groups.empty()) return groups;
  std::rotate(groups.begin(), groups.end() - 1, groups.end());
  const auto& usual = ranks_.at(groups[0].ranks[0]).counts;
  for (size_t i = 1; i < groups.size(); ++i) {
    std::map<uint32_t, int64_t> more;
    for (const auto& [kind, count] : ranks_.at(groups[i].ranks[0]).counts) {
      more[kind] += static_cast<int64_t>(count);
    }
    for (const auto& [kind, count] : usual) more[kind] -= static_cast<int64_t>(count);
    for (const auto& [kind, difference] : more) {
      if (difference == 0) continue;
      groups[i].odd.push_back({kinds_[kind].stream, difference, kinds_[kind].example});
    }
  }
  return groups;
}

std::string LogDiff::Text(const Style& style) const {
  const std::vector<Group> groups = Groups();
  if (groups.empty()) return "no lines\n";
  const auto name = [](const Group& group) {
    return fmt::format("rank{} {} ({}{})", group.ranks.size() == 1 ? "" : "s",
                       plan::NumberRanges(group.ranks, ","), group.host,
                       group.ranks.size() == 1 ? "" : " ...");
  };
  std::string out = style.Bold(fmt::format("{}: the same {}, numbers aside", name(groups[0]),
                                           Count(groups[0].lines, "line"))) +
                    "\n";
  for (size_t i = 1; i < groups.size(); ++i) {
    const Group& group = groups[i];
    out += style.Bold(fmt::format("{}: {}, other than rank {}:", name(group),
                                  Count(group.lines, "line"), groups[0].ranks[0])) +
           "\n";
    for (size_t k = 0; k < std::min(group.odd.size(), kMaxShown); ++k) {
      const Odd& odd = group.odd[k];
      const std::string line =
          fmt::format("  {:+6}x {}  {}", odd.more, odd.stream == v1::STREAM_STDERR ? "err" : "out",
                      odd.example);
      out += (odd.more > 0 ? style.Green(line) : style.Red(line)) + "\n";
    }
    if (group.odd.size() > kMaxShown) {
      out += fmt::format("  and {} more kinds of lines\n", group.odd.size() - kMaxShown);
    }
  }
  if (not_compared_ > 0) {
    out += fmt::format("{} not compared: there are more than {} kinds\n",
                       Count(not_compared_, "line"), kMaxKinds);
  }
  return out;
}

std::string LogDiff::Json() const {
  nlohmann::ordered_json out;
  out["groups"] = nlohmann::ordered_json::array();
  for (const Group& group : Groups()) {
    nlohmann::ordered_json one;
    one["ranks"] = group.ranks;
    one["host"] = group.host;
    one["lines"] = group.lines;
    one["odd"] = nlohmann::ordered_json::array();
    for (const Odd& odd : group.odd) {
      one["odd"].push_back(
          {{"stream", StreamName(odd.stream)}, {"more", odd.more}, {"text", odd.example}});
    }
    out["groups"].push_back(std::move(one));
  }
  out["not_compared"] = not_compared_;
  return out.dump() + "\n";
}

}  // namespace muster::cli
