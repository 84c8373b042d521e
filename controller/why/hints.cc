#include "controller/why/hints.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <utility>

#include "controller/engine/text.h"

namespace muster::why {
namespace {

constexpr size_t kMostHints = 3;
constexpr size_t kMaxFound = 160;
constexpr size_t kMaxText = 64 << 10;

// A text of one failure, and whose.
struct Source {
  RuleText kind = RuleText::kLog;
  std::string host;
  std::string text;
};

std::string Joined(const std::vector<LogLine>& lines) {
  std::string out;
  for (const LogLine& line : lines) absl::StrAppend(&out, line.text, "\n");
  if (out.size() > kMaxText) out.erase(0, out.size() - kMaxText);
  return out;
}

std::vector<Source> Sources(const Words& words, const Why& why) {
  std::vector<Source> sources;
  for (const CauseRank& cause : why.causes) {
    if (!cause.error.empty()) sources.push_back({RuleText::kLog, cause.host, cause.error});
  }
  for (const KernelEvidence& evidence : why.kernel) {
    sources.push_back({RuleText::kKernel, evidence.host, evidence.text});
  }
  for (const CauseRank& cause : why.causes) {
    sources.push_back({RuleText::kLog, cause.host, Joined(cause.lines)});
    const auto said = words.find(cause.rank);
    if (said == words.end()) continue;
    sources.push_back({RuleText::kLog, cause.host, Joined(said->second.tail)});
  }
  return sources;
}

// A message without what a group that took no part would have said.
std::string Fill(const std::string& text, const std::vector<std::string>& groups,
                 const std::string& host) {
  std::string out = engine::Printable(FillGroups(text, groups));
  out = absl::StrReplaceAll(out, {{" ()", ""}, {"{host}", host}});
  while (!out.empty() && (out.back() == ' ' || out.back() == ':')) out.pop_back();
  return out;
}

// The groups as a rule's patterns have them: the first that took part comes as {1} whichever
// alternative it stands in.
std::vector<std::string> Dense(const std::vector<std::string>& groups) {
  std::vector<std::string> out = {groups.front()};
  for (size_t i = 1; i < groups.size(); ++i) {
    if (!groups[i].empty()) out.push_back(groups[i]);
  }
  return out;
}

}  // namespace

void AddHints(const RuleSet& rules, const Words& words, Why& why) {
  std::vector<const Rule*> given_up;
  for (const Source& source : Sources(words, why)) {
    for (const Rule& rule : rules.rules) {
      if (why.hints.size() == kMostHints) break;
      if (rule.text != source.kind) continue;
      const bool known = std::any_of(why.hints.begin(), why.hints.end(),
                                     [&](const Hint& hint) { return hint.place == rule.place; });
      if (known) continue;
      for (const Pattern& pattern : rule.patterns) {
        const auto found = pattern.Search(source.text);
        if (!found.ok()) {
          if (std::find(given_up.begin(), given_up.end(), &rule) == given_up.end()) {
            given_up.push_back(&rule);
            why.remarks.push_back(absl::StrCat(
                rule.place, ": the search was given up: ", std::string(found.status().message())));
          }
          continue;
        }
        if (!*found) continue;
        const std::vector<std::string> groups = Dense((*found)->groups);
        Hint hint;
        hint.cause = Fill(rule.cause, groups, source.host);
        hint.advice = Fill(rule.advice, groups, source.host);
        hint.action = rule.action;
        hint.rule = rule.name;
        hint.place = rule.place;
        hint.found = engine::Printable(engine::Shorten(groups.front(), kMaxFound));
        why.hints.push_back(std::move(hint));
        break;
      }
    }
  }
}

}  // namespace muster::why
