#pragma once

#include <string>

namespace muster::preflight {

enum class Severity { kNote, kWarning, kError };

// "note", "warning", "error": the words of control.proto.
const char* SeverityName(Severity severity);

// One result of comparing the nodes. An error keeps the job from starting.
struct Finding {
  std::string check;  // name as in `[checks] skip`
  Severity severity = Severity::kError;
  std::string host;      // the odd one; empty = the job as a whole
  std::string value;     // what this host has
  std::string majority;  // what most hosts have; empty when there is nothing to compare with
  std::string fix;       // what to do, a command where there is one
};

// One line for a person: "program: 127.0.0.3: /x/train: No such file (most hosts: /x/train); fix:
// ...".
std::string ToLine(const Finding& finding);

}  // namespace muster::preflight
