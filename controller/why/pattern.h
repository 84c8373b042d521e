#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::why {

// A regular expression that somebody else wrote (PCRE2, `^` and `$` at line ends), searched for in
// text that somebody else wrote: the work of one search is bounded, whatever both are. Immutable;
// any thread.
class Pattern {
 public:
  // InvalidArgument: what is wrong, and at which character.
  static absl::StatusOr<Pattern> Compile(std::string_view regex);

  struct Found {
    std::vector<std::string> groups;  // [0] is the whole match; groups that took no part are ""
  };
  // The first match in `text`, or nothing. ResourceExhausted: the search was given up.
  absl::StatusOr<std::optional<Found>> Search(std::string_view text) const;
  // Whether there is a match; for many texts.
  absl::StatusOr<bool> Matches(std::string_view text) const;

 private:
  struct Code;
  explicit Pattern(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  std::shared_ptr<const Code> code_;
};

}  // namespace muster::why
