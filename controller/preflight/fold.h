#pragma once

#include <string>
#include <vector>

#include "controller/preflight/finding.h"

// Findings that many hosts share, said once. Pure.

namespace muster::preflight {

struct Folded {
  std::string check;
  Severity severity = Severity::kError;
  std::string hosts;  // "n1, n2, n3"; from the ninth on counted; empty = the job as a whole
  std::string value;
  std::string majority;
  // One for all where it is the same but for the host's name, which it then names all of; else one
  // a host.
  std::vector<std::string> fixes;
};

// Findings that differ in host and fix alone become one, at the place of the first.
std::vector<Folded> Fold(const std::vector<Finding>& findings);

// Lines for a person: "program: n1, n2: no such file (most hosts: /x/train); fix: ...", and a line
// for each further fix.
std::string ToLines(const Folded& folded);

}  // namespace muster::preflight
