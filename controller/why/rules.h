#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/why/pattern.h"

// Rules that know a failure by its words (docs/why.md). Parsing is pure.

namespace muster::why {

// What to do about it.
enum class RuleAction { kExcludeHost, kRetry, kStop };
std::string_view Name(RuleAction action);  // "exclude-host", "retry", "stop"

// Where the words stand.
enum class RuleText { kLog, kKernel };

struct Rule {
  std::string name;
  std::string place;  // "deploy/rules/memory.toml:3"
  RuleText text = RuleText::kLog;
  std::vector<Pattern> patterns;  // one of them must be found
  std::string cause;              // {1}, {2} ... stand for the groups of the match
  std::string advice;
  RuleAction action = RuleAction::kStop;
};

// The rules of one file. InvalidArgument: "source:line:column: message" lines, and none of its
// rules counts.
absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view text, const std::string& source);

// `text` with {1} ... {9} replaced by the groups; other braces stay.
std::string FillGroups(std::string_view text, const std::vector<std::string>& groups);

// Rules in the order in which they are tried.
struct RuleSet {
  std::vector<Rule> rules;
  std::vector<std::string> errors;  // files that don't count, and why
};

}  // namespace muster::why
