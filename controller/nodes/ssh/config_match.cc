#include "controller/nodes/ssh/config_match.h"

#include <functional>
#include <map>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/nodes/ssh/config_text.h"
#include "controller/nodes/ssh/pattern.h"
#include "controller/nodes/ssh/tokens.h"

namespace muster::nodes::ssh {
namespace {

class Matcher {
 public:
  Matcher(const MatchSubject& subject, bool may_run, ConfigSource& source)
      : request_(subject.request),
        so_far_(subject.so_far),
        final_pass_(subject.final_pass),
        may_run_(may_run),
        source_(source) {}

  absl::StatusOr<MatchOutcome> Evaluate(std::string_view words) {
    MUSTER_ASSIGN_OR_RETURN(host_, HostSoFar());
    int criteria = 0;
    outcome_.matched = true;
    while (true) {
      MUSTER_ASSIGN_OR_RETURN(std::string word, Next(words));
      if (word.empty()) break;
      const std::string written = word;
      const bool negated = word.front() == '!';
      if (negated) word.erase(0, 1);
      const std::string name = ToLower(word);
      if (name == "all") {
        MUSTER_ASSIGN_OR_RETURN(const std::string rest, Next(words));
        if (criteria > 1 || !rest.empty()) {
          return absl::InvalidArgumentError("'" + written + "' stands alone after Match");
        }
        if (outcome_.matched) outcome_.matched = !negated;
        return outcome_;
      }
      ++criteria;
      bool holds = false;
      if (name == "final" || name == "canonical") {
        outcome_.wants_final_pass = outcome_.wants_final_pass || name == "final";
        holds = final_pass_;
      } else {
        MUSTER_ASSIGN_OR_RETURN(const std::string argument, Next(words));
        if (argument.empty()) {
          return absl::InvalidArgumentError("Match " + written + " needs a value");
        }
        MUSTER_ASSIGN_OR_RETURN(holds, Holds(name, argument, negated));
      }
      if (holds == negated) outcome_.matched = false;
    }
    if (criteria == 0) return absl::InvalidArgumentError("Match needs something to compare");
    return outcome_;
  }

 private:
  // "" at the end and at a comment.
  static absl::StatusOr<std::string> Next(std::string_view& words) {
    std::string word;
    if (!TakeWord(words, word)) return absl::InvalidArgumentError("a quote \" is not closed");
    if (!word.empty() && word.front() == '#') {
      words = {};
      word.clear();
    }
    return word;
  }

  absl::StatusOr<std::string> HostSoFar() const {
    if (!so_far_.host_name) return request_.host;
    if (final_pass_) return *so_far_.host_name;
    return ExpandTokens(*so_far_.host_name, {{'h', request_.host}});
  }

  std::string UserSoFar() const { return so_far_.user.value_or(source_.User().name); }

  absl::StatusOr<bool> Holds(const std::string& name, const std::string& argument, bool negated) {
    if (name == "host") return MatchHostList(host_, argument) == ListMatch::kYes;
    if (name == "originalhost") return MatchHostList(request_.host, argument) == ListMatch::kYes;
    if (name == "user") return MatchPatternList(UserSoFar(), argument) == ListMatch::kYes;
    if (name == "localuser") {
      return MatchPatternList(source_.User().name, argument) == ListMatch::kYes;
    }
    if (name == "exec") return Run(argument, negated);
    return absl::InvalidArgumentError(
        "Match " + name + " is not known" +
        DidYouMean(name, {"all", "canonical", "final", "host", "originalhost", "user", "localuser",
                          "exec"}) +
        "; ssh may know it: use transport openssh");
  }

  // Run only when everything before it holds; otherwise its outcome does not matter.
  absl::StatusOr<bool> Run(const std::string& argument, bool negated) {
    const Tokens tokens = MakeTokens({.original = request_.host,
                                      .host = host_,
                                      .alias = so_far_.host_key_alias.value_or(host_),
                                      .user = UserSoFar(),
                                      .port = so_far_.port.value_or(22)},
                                     source_.User());
    MUSTER_ASSIGN_OR_RETURN(const std::string command, ExpandTokens(argument, tokens));
    if (!outcome_.matched || !may_run_) return !negated;
    return source_.Run(command);
  }

  const ConfigRequest& request_;
  const Config& so_far_;
  const bool final_pass_;
  const bool may_run_;
  ConfigSource& source_;
  std::string host_;
  MatchOutcome outcome_;
};

}  // namespace

absl::StatusOr<MatchOutcome> EvaluateMatch(std::string_view words, const MatchSubject& subject,
                                           bool may_run, ConfigSource& source) {
  return Matcher(subject, may_run, source).Evaluate(words);
}

}  // namespace muster::nodes::ssh
