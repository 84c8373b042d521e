#include "controller/nodes/ssh/config.h"

#include <algorithm>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/nodes/ssh/config_match.h"
#include "controller/nodes/ssh/config_setting.h"
#include "controller/nodes/ssh/config_text.h"
#include "controller/nodes/ssh/keywords.h"
#include "controller/nodes/ssh/pattern.h"
#include "controller/nodes/ssh/tokens.h"

namespace muster::nodes::ssh {
namespace {

constexpr int kDeepestInclude = 16;
// Includes that include each other could go on for very long before they are too deep.
constexpr int kMostLines = 100'000;
constexpr size_t kLongestLine = 64 << 10;

// The begin of a line: its keyword, and what follows.
struct Line {
  std::string keyword;  // as written; "" for nothing to do
  std::string_view rest;
};

absl::StatusOr<Line> ParseLine(std::string_view text) {
  Line line;
  const size_t end = text.find_last_not_of(" \t\r\n\f");
  if (end == std::string_view::npos) return line;
  text = text.substr(0, end + 1);
  bool whole = TakeWord(text, line.keyword);
  // Blanks at the begin make an empty first word.
  if (whole && line.keyword.empty()) whole = TakeWord(text, line.keyword);
  if (line.keyword.empty() || line.keyword.front() == '#') return Line();
  if (!whole) return absl::InvalidArgumentError("a quote \" is not closed");
  line.rest = text.substr(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (line.rest.empty()) {
    return absl::InvalidArgumentError("nothing after " + line.keyword);
  }
  return line;
}

struct File {
  std::string path;
  bool users = false;        // of the user, so that ~ and ~/.ssh are meant; else of the system
  bool never_match = false;  // included where nothing applies: only checked
  int depth = 0;
};

class Reader {
 public:
  Reader(const ConfigRequest& request, ConfigSource& source) : request_(request), source_(source) {
    config_.user = request.user;
    config_.port = request.port;
  }

  absl::StatusOr<Config> Read() {
    for (const std::string& option : request_.options) {
      MUSTER_RETURN_IF_ERROR(Annotate(ReadOption(option), "option '" + option + "'"));
    }
    MUSTER_RETURN_IF_ERROR(ReadFiles());
    if (!wants_final_pass_) return std::move(config_);
    MUSTER_ASSIGN_OR_RETURN(
        const std::string host,
        ExpandTokens(config_.host_name.value_or(request_.host), {{'h', request_.host}}));
    config_.host_name = ToLower(host);
    final_pass_ = true;
    MUSTER_RETURN_IF_ERROR(ReadFiles());
    // It has been expanded, and will be again.
    std::string& name = *config_.host_name;
    for (size_t i = name.find('%'); i != std::string::npos; i = name.find('%', i + 2)) {
      name.insert(i, 1, '%');
    }
    return std::move(config_);
  }

 private:
  absl::Status ReadOption(std::string_view option) {
    MUSTER_ASSIGN_OR_RETURN(const Line line, ParseLine(option));
    if (line.keyword.empty()) return absl::InvalidArgumentError("is not Keyword=value");
    const auto keyword = FindKeyword(ToLower(line.keyword));
    if (keyword == Keyword::kHost || keyword == Keyword::kMatch || keyword == Keyword::kInclude) {
      return absl::InvalidArgumentError(line.keyword + " belongs into a file");
    }
    bool active = true;
    return ReadLine(line, {.path = "", .users = true}, "command line", active);
  }

  absl::Status ReadFiles() {
    if (request_.file) {
      if (ToLower(*request_.file) == "none") return absl::OkStatus();
      MUSTER_ASSIGN_OR_RETURN(const std::string path,
                              ExpandHome(*request_.file, source_.User().home));
      MUSTER_ASSIGN_OR_RETURN(const bool found, ReadFile({.path = path, .users = true}, false));
      if (!found) return absl::InvalidArgumentError(path + ": no such file");
      return absl::OkStatus();
    }
    const std::string own = source_.User().home + "/.ssh/config";
    MUSTER_RETURN_IF_ERROR(ReadFile({.path = own, .users = true}, true).status());
    return ReadFile({.path = "/etc/ssh/ssh_config"}, false).status();
  }

  // False: no such file.
  absl::StatusOr<bool> ReadFile(const File& file, bool check_owner) {
    if (file.depth > kDeepestInclude) {
      return absl::InvalidArgumentError(file.path + ": Include goes deeper than " +
                                        std::to_string(kDeepestInclude) + " files");
    }
    MUSTER_ASSIGN_OR_RETURN(const auto text, source_.Read(file.path, check_owner));
    if (!text) return false;
    // An included file starts as its Include stands: where nothing applies, nothing here does.
    bool active = !file.never_match;
    int number = 0;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      const std::string place = file.path + ":" + std::to_string(++number);
      MUSTER_RETURN_IF_ERROR(Annotate(ReadText(rest.substr(0, end), file, place, active), place));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return true;
  }

  absl::Status ReadText(std::string_view text, const File& file, const std::string& place,
                        bool& active) {
    if (++lines_ > kMostLines) {
      return absl::InvalidArgumentError("more than " + std::to_string(kMostLines) +
                                        " lines; do files include each other?");
    }
    if (text.size() > kLongestLine) return absl::InvalidArgumentError("the line is too long");
    if (text.find('\0') != std::string_view::npos) {
      return absl::InvalidArgumentError("a zero byte: this is no text");
    }
    MUSTER_ASSIGN_OR_RETURN(const Line line, ParseLine(text));
    if (line.keyword.empty()) return absl::OkStatus();
    return ReadLine(line, file, place, active);
  }

  absl::Status ReadLine(const Line& line, const File& file, const std::string& place,
                        bool& active) {
    const std::string name = ToLower(line.keyword);
    const std::optional<Keyword> keyword = FindKeyword(name);
    MUSTER_ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitArguments(line.rest));
    if (!keyword) {
      if (MatchPatternList(name, ToLower(ignore_unknown_)) == ListMatch::kYes) {
        return absl::OkStatus();
      }
      return absl::InvalidArgumentError("unknown keyword '" + line.keyword + "'" +
                                        DidYouMean(name, KeywordNames()) +
                                        "; if ssh knows it, use transport openssh");
    }
    switch (*keyword) {
      case Keyword::kIgnored:
        return absl::OkStatus();
      case Keyword::kHost:
        return BeginHost(words, file, active);
      case Keyword::kMatch:
        return BeginMatch(line.rest, file, active);
      case Keyword::kInclude:
        return Include(words, file, active);
      case Keyword::kIgnoreUnknown:
        if (words.size() != 1) return absl::InvalidArgumentError("IgnoreUnknown takes one list");
        if (active && ignore_unknown_.empty()) ignore_unknown_ = words[0];
        return absl::OkStatus();
      default:
        return ApplySetting({.keyword = *keyword,
                             .name = line.keyword,
                             .text = line.rest,
                             .words = words,
                             .place = place,
                             .active = active},
                            source_, config_);
    }
  }

  absl::Status BeginHost(const std::vector<std::string>& patterns, const File& file,
                         bool& active) const {
    active = false;
    bool negated = false;
    for (const std::string& pattern : patterns) {
      if (pattern.empty()) return absl::InvalidArgumentError("an empty pattern after Host");
      const bool negative = pattern.front() == '!';
      if (!MatchPattern(request_.host, std::string_view(pattern).substr(negative ? 1 : 0))) {
        continue;
      }
      negated = negated || negative;
      active = active || !negative;
    }
    active = active && !negated && !file.never_match;
    return absl::OkStatus();
  }

  absl::Status BeginMatch(std::string_view words, const File& file, bool& active) {
    const MatchSubject subject = {
        .so_far = config_, .request = request_, .final_pass = final_pass_};
    MUSTER_ASSIGN_OR_RETURN(const MatchOutcome outcome,
                            EvaluateMatch(words, subject, !file.never_match, source_));
    wants_final_pass_ = wants_final_pass_ || outcome.wants_final_pass;
    active = outcome.matched && !file.never_match;
    return absl::OkStatus();
  }

  absl::Status Include(const std::vector<std::string>& patterns, const File& file, bool active) {
    for (const std::string& pattern : patterns) {
      if (pattern.empty()) return absl::InvalidArgumentError("an empty path after Include");
      if (pattern.front() == '~' && !file.users) {
        return absl::InvalidArgumentError("~ has no meaning in a file of the system");
      }
      std::string path = pattern;
      const std::string home = source_.User().home;
      if (path.front() == '~') {
        MUSTER_ASSIGN_OR_RETURN(path, ExpandHome(path, home));
      } else if (path.front() != '/') {
        path.insert(0, file.users ? home + "/.ssh/" : "/etc/ssh/");
      }
      for (const std::string& included : source_.Glob(path)) {
        const File inner = {.path = included,
                            .users = file.users,
                            .never_match = file.never_match || !active,
                            .depth = file.depth + 1};
        MUSTER_RETURN_IF_ERROR(ReadFile(inner, true).status());
      }
    }
    return absl::OkStatus();
  }

  const ConfigRequest& request_;
  ConfigSource& source_;
  Config config_;
  std::string ignore_unknown_;
  int lines_ = 0;
  bool final_pass_ = false;
  bool wants_final_pass_ = false;
};

}  // namespace

absl::StatusOr<Config> ReadConfig(const ConfigRequest& request, ConfigSource& source) {
  return Reader(request, source).Read();
}

}  // namespace muster::nodes::ssh
