#pragma once

#include <absl/status/status.h>

#include <string_view>

namespace muster::cli {

// Writes all of `text` to a descriptor, also a non-blocking one. False once nobody reads any more
// (a closed pipe or terminal); SIGPIPE must be ignored. Any thread.
bool WriteAll(int fd, std::string_view text);

// `muster: text` on stderr: the one form of Muster's errors and remarks. Several lines are indented
// below the first.
void PrintError(std::string_view text);

// The end of a command that failed: the error on stderr, with --json also on stdout. Returns the
// exit code.
int Fail(const absl::Status& status, bool json);

// A line on stdout.
void PrintLine(std::string_view text);

// The end of a command whose output is what it is for: `code`, or if what was to go to stdout got
// lost (a full disk, not a reader that has seen enough) an error on stderr and no 0.
int CheckStdout(int code);

}  // namespace muster::cli
