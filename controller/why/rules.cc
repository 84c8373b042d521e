#include "controller/why/rules.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/plan/recipe_reader.h"
#include "controller/plan/toml_value.h"

namespace muster::why {
namespace {

using plan::Complaints;
using plan::TableReader;
using plan::TomlEntry;
using plan::TomlValue;

// `match` is one regular expression or a list of them.
void ReadPatterns(const TomlEntry* match, const plan::Position& rule_at, Rule& out,
                  Complaints& complaints) {
  if (match == nullptr) {
    complaints.Add(rule_at, "a rule needs match = '...': a regular expression");
    return;
  }
  const bool list = match->value.kind == TomlValue::Kind::kArray;
  const std::vector<TomlValue> one = {match->value};
  for (const TomlValue& value : list ? match->value.items : one) {
    if (value.kind != TomlValue::Kind::kString || value.text.empty()) {
      complaints.Add(value.at, "match must be a regular expression in quotes, or a list of them");
      continue;
    }
    auto pattern = Pattern::Compile(value.text);
    if (pattern.ok()) {
      out.patterns.push_back(*std::move(pattern));
    } else {
      complaints.Add(value.at, absl::StrCat("match: ", std::string(pattern.status().message())));
    }
  }
}

// One of `words`; the first if the key is absent.
size_t ReadWord(TableReader& rule, std::string_view key, const std::vector<std::string>& words,
                Complaints& complaints) {
  const TomlEntry* const entry = rule.Find(key);
  if (entry == nullptr) return 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (entry->value.kind == TomlValue::Kind::kString && entry->value.text == words[i]) return i;
  }
  std::string known;
  for (const auto& word : words) absl::StrAppend(&known, known.empty() ? "" : ", ", word);
  complaints.Add(entry->value.at, absl::StrCat(std::string(key), " must be one of ", known,
                                               DidYouMean(entry->value.text, words)));
  return 0;
}

Rule ReadRule(const TomlValue& table, const std::string& source, Complaints& complaints) {
  TableReader rule(table, "[[rule]]", complaints);
  Rule out;
  out.place = absl::StrCat(source, ":", table.at.line);
  out.name = rule.String("name");
  out.cause = rule.String("cause");
  out.advice = rule.String("advice");
  out.text =
      ReadWord(rule, "in", {"log", "kernel"}, complaints) == 0 ? RuleText::kLog : RuleText::kKernel;
  out.action = static_cast<RuleAction>(
      ReadWord(rule, "action", {"exclude-host", "retry", "stop"}, complaints));
  const bool has_action = rule.Find("action") != nullptr;
  ReadPatterns(rule.Find("match"), table.at, out, complaints);
  if (out.cause.empty()) complaints.Add(table.at, "a rule needs cause = \"...\": what it means");
  if (!has_action)
    complaints.Add(table.at, "a rule needs action = \"exclude-host\", \"retry\" or \"stop\"");
  rule.Finish();
  return out;
}

}  // namespace

std::string_view Name(RuleAction action) {
  switch (action) {
    case RuleAction::kExcludeHost:
      return "exclude-host";
    case RuleAction::kRetry:
      return "retry";
    case RuleAction::kStop:
      return "stop";
  }
  return "stop";
}

absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view text, const std::string& source) {
  MUSTER_ASSIGN_OR_RETURN(const TomlValue root, plan::ParseToml(text, source));
  Complaints complaints(source);
  TableReader top(root, "a file of rules", complaints);
  std::vector<Rule> rules;
  if (const TomlEntry* const list = top.Find("rule")) {
    const bool tables = list->value.kind == TomlValue::Kind::kArray;
    if (!tables) complaints.Add(list->at, "write [[rule]], with two brackets, before each rule");
    for (const TomlValue& item : list->value.items) {
      if (item.kind == TomlValue::Kind::kTable) {
        rules.push_back(ReadRule(item, source, complaints));
      } else {
        complaints.Add(item.at, "write [[rule]], with two brackets, before each rule");
      }
    }
  }
  top.Finish();
  MUSTER_RETURN_IF_ERROR(complaints.ToStatus());
  return rules;
}

std::string FillGroups(std::string_view text, const std::vector<std::string>& groups) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool place = text[i] == '{' && i + 2 < text.size() && text[i + 2] == '}' &&
                       text[i + 1] >= '1' && text[i + 1] <= '9';
    if (!place) {
      out += text[i];
      continue;
    }
    const auto group = static_cast<size_t>(text[i + 1] - '0');
    if (group < groups.size()) out += groups[group];
    i += 2;
  }
  return out;
}

}  // namespace muster::why
