#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// The programs that carry a connection to a host: their command lines. Pure.

namespace muster::nodes {

// A text of words, as a person writes them: blanks separate, '...' and "..." keep blanks, \ takes
// the next character as it is. Nothing else is special: no variables, no globs.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view text);

// Whether `words` can be a template: there is a program and a {host} or {addr}. InvalidArgument
// says what is wrong. A {name} that is nearly one of ours is an error; other braces are plain text.
absl::Status CheckTemplate(const std::vector<std::string>& words);

// The template for one host. {host} {addr} {user} {port} are replaced ({user} and {port} only when
// the hostfile has them); {command} is the whole remote command in one word for a program that
// gives it to a shell; without it the remote command's words are appended.
absl::StatusOr<std::vector<std::string>> FillTemplate(const std::vector<std::string>& words,
                                                      const v1::Host& host);

// The user's own ssh program: never asks anything, gives up in `connect_timeout_s`. `extra` options
// come before ours, so they win.
std::vector<std::string> OpensshWords(const std::vector<std::string>& extra, const v1::Host& host,
                                      int connect_timeout_s);

}  // namespace muster::nodes
