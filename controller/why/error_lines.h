#pragma once

#include <string>
#include <vector>

#include "controller/why/why.h"

// What a failing program said about its failure. Pure.

namespace muster::why {

// The call stack of an error record in torchrun's shape, line by line, at most the last `most`;
// empty if it has none of more than one line.
std::vector<std::string> CallStack(const std::string& record, size_t most);

// The line of a rank's last lines that tells its error best: C++'s what(), the last line of a
// Python traceback, a line that begins with "error" or "fatal"; else the last line of stderr, else
// the last line. "" when there is none.
std::string ErrorLine(const std::vector<LogLine>& tail);

}  // namespace muster::why
