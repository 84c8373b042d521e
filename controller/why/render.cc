#include "controller/why/render.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "controller/engine/text.h"
#include "controller/engine/transitions.h"
#include "controller/plan/text_table.h"
#include "controller/why/groups.h"

namespace muster::why {
namespace {

using Tone = TextLine::Tone;

constexpr int kLabelWidth = 7;
constexpr size_t kMostRankList = 60;
constexpr size_t kMostCleanNodes = 8;

class Screen {
 public:
  // A section; its label stands before its first line only.
  void Section(std::string_view label) { label_ = label; }
  void Add(std::string text, Tone tone = Tone::kPlain) {
    lines_.push_back({label_, std::move(text), tone});
    label_ = "";
  }
  std::vector<TextLine> Take() { return std::move(lines_); }

 private:
  std::string_view label_;
  std::vector<TextLine> lines_;
};

std::string ClockTime(int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[16];
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  return text;
}

std::string Ranks(const std::vector<uint32_t>& ranks) {
  std::string list = plan::NumberRanges(ranks, ",");
  if (list.size() > kMostRankList) list = list.substr(0, list.rfind(',', kMostRankList)) + ",...";
  return ranks.size() == 1 ? "rank " + list : fmt::format("{} ranks ({})", ranks.size(), list);
}

std::string Describe(const RankGroup& group) {
  std::string out = Ranks(group.ranks) + ": " + group.doing;
  if (group.after_s) {
    const auto [low, high] = *group.after_s;
    out += high - low < 0.01 ? fmt::format(", {:.2f} s later", low)
                             : fmt::format(", {:.2f} to {:.2f} s later", low, high);
  }
  if (group.iterations) {
    const auto [low, high] = *group.iterations;
    out += low == high ? fmt::format("; iteration {}", low)
                       : fmt::format("; iterations {} to {}", low, high);
  }
  if (!group.last_line.empty()) out += "; last line: " + group.last_line;
  return out;
}

void AddCauses(const Why& why, Screen& screen) {
  if (why.cause == v1::CAUSE_OK) return;  // the headline and the ranks say it
  screen.Section("cause");
  if (why.causes.empty()) {
    for (const auto line : absl::StrSplit(why.message, '\n')) {
      // A finding of preflight: what to do has a line of its own.
      const std::pair<std::string, std::string> parts =
          absl::StrSplit(line, absl::MaxSplits("; fix: ", 1));
      screen.Add(parts.first);
      if (!parts.second.empty()) screen.Add("  fix: " + parts.second);
    }
  } else if (why.causes.size() > 1) {
    std::string ranks;
    for (const CauseRank& cause : why.causes) {
      absl::StrAppend(&ranks, ranks.empty() ? "" : " and ", cause.rank);
    }
    screen.Add("which rank failed first is undecidable between ranks " + ranks +
                   " (within the uncertainty of the nodes' clocks)",
               Tone::kBad);
  }
  for (const CauseRank& cause : why.causes) {
    screen.Add(
        fmt::format("rank {} on {} (pid {}) {}", cause.rank, cause.host, cause.pid, cause.end),
        Tone::kBad);
    if (!cause.error.empty()) {
      screen.Section("error");
      screen.Add(cause.error, Tone::kBad);
      screen.Add(fmt::format("(from {})", cause.error_source), Tone::kQuiet);
    }
    if (!cause.ports.empty()) screen.Section("port");
    for (const std::string& port : cause.ports) screen.Add(port, Tone::kBad);
    if (!cause.lines.empty()) screen.Section(cause.call_stack ? "stack" : "lines");
    for (const LogLine& line : cause.lines) {
      screen.Add(cause.call_stack ? line.text : (line.err ? "err | " : "out | ") + line.text);
    }
    screen.Section("");
  }
}

void AddEvidence(const Why& why, Screen& screen) {
  screen.Section("kernel");
  for (const KernelEvidence& line : why.kernel) {
    std::string text = fmt::format("{} {}  {}", line.host, ClockTime(line.time_ns), line.text);
    if (line.rank) text += fmt::format("  (rank {})", *line.rank);
    screen.Add(std::move(text), Tone::kBad);
  }
  for (const std::string& note : why.kernel_notes) screen.Add(note, Tone::kQuiet);
}

std::string Then(RuleAction action) {
  switch (action) {
    case RuleAction::kExcludeHost:
      return "then: run it again without this host";
    case RuleAction::kRetry:
      return "then: run it again";
    case RuleAction::kStop:
      return "then: mend it first, the same would happen again";
  }
  return "";
}

void AddHintLines(const Why& why, Screen& screen) {
  for (const Hint& hint : why.hints) {
    screen.Section("hint");
    screen.Add(hint.cause);
    if (!hint.advice.empty()) screen.Add("do: " + hint.advice);
    screen.Add(Then(hint.action));
    screen.Add(fmt::format("(rule {}, {})", hint.rule, hint.place), Tone::kQuiet);
  }
}

void AddGroups(std::string_view label, const std::vector<RankGroup>& groups, Screen& screen) {
  screen.Section(label);
  for (const RankGroup& group : groups) screen.Add(Describe(group));
}

// A line a node, but one for all clean nodes of the same words when they are many.
void AddNodes(const std::vector<NodeLine>& all, Screen& screen) {
  std::map<std::string, std::vector<std::string>> clean;  // hosts by words
  for (const NodeLine& node : all) {
    if (node.clean) clean[node.details].push_back(node.host);
  }
  const auto many = [&](const NodeLine& node) {
    return node.clean && clean[node.details].size() > kMostCleanNodes;
  };
  size_t width = 0;
  for (const NodeLine& node : all) {
    if (!many(node)) width = std::max(width, node.host.size());
  }
  screen.Section("nodes");
  for (const NodeLine& node : all) {
    const std::vector<std::string>& same = clean[node.details];
    if (!many(node)) {
      screen.Add(fmt::format("{:<{}}  {}  {}", node.host, width, node.verdict, node.details),
                 node.clean ? Tone::kGood : Tone::kBad);
    } else if (same.front() == node.host) {
      screen.Add(fmt::format("{} nodes ({} ... {})  {}  {} on each", same.size(), same.front(),
                             same.back(), node.verdict, node.details),
                 Tone::kGood);
    }
  }
}

}  // namespace

std::string UnfinishedText(const std::vector<uint32_t>& ranks) {
  return "NOT whole: a part of the output of " + Ranks(ranks) +
         " is only on its node, on its way or because the disk here does not take it";
}

std::string Headline(const Why& why) {
  std::string out = "job " + why.job;
  if (!why.name.empty()) out += " (" + engine::Printable(why.name) + ")";
  out += " " + std::string(engine::Name(why.state));
  if (!engine::IsTerminal(why.state)) return out;
  if (why.duration_ns > 0) out += " after " + engine::FormatDuration(why.duration_ns);
  if (why.cause == v1::CAUSE_OK) return out;  // the ranks' line has the code
  return out + fmt::format(", exit code {}", why.code);
}

std::vector<TextLine> Lines(const Why& why) {
  Screen screen;
  if (engine::IsTerminal(why.state)) AddCauses(why, screen);
  AddEvidence(why, screen);
  AddHintLines(why, screen);
  AddGroups("then", why.followed, screen);
  AddGroups(why.causes.empty() ? "ranks" : "others", why.others, screen);
  AddNodes(why.nodes, screen);
  if (!why.output_dir.empty()) {
    screen.Section("logs");
    screen.Add(engine::Printable(why.output_dir));
    if (!why.unfinished.empty()) screen.Add(UnfinishedText(why.unfinished), Tone::kBad);
    if (!why.causes.empty()) {
      screen.Add(fmt::format("muster logs {} --rank {}", why.job, why.causes.front().rank));
    }
  }
  screen.Section("note");
  for (const std::string& remark : why.remarks) {
    for (const auto line : absl::StrSplit(remark, '\n')) {
      screen.Add("a rule does not count: " + engine::Printable(std::string(line)), Tone::kBad);
    }
  }
  return screen.Take();
}

std::string Format(const TextLine& line) {
  return fmt::format("  {:<{}} {}", line.label, kLabelWidth, line.text);
}

std::string Text(const Why& why) {
  std::string out = Headline(why) + "\n";
  for (const TextLine& line : Lines(why)) out += Format(line) + "\n";
  return out;
}

}  // namespace muster::why
