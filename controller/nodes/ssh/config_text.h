#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

// How a line of ssh_config(5) falls into words; the rules are OpenSSH's, oddities included. Pure.

namespace muster::nodes::ssh {

// Takes the next word off `text`: words are separated by blanks and one '='; "..." keeps both.
// After blanks at the front the first word is empty, as after the end. False: a quote is not
// closed.
bool TakeWord(std::string_view& text, std::string& word);

// The words after a keyword: blanks separate, '...' and "..." keep them, \ before a quote, \ or
// blank takes it as it is, an unquoted # at the begin of a word begins a comment.
absl::StatusOr<std::vector<std::string>> SplitArguments(std::string_view text);

std::string ToLower(std::string_view text);

}  // namespace muster::nodes::ssh
