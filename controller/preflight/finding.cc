#include "controller/preflight/finding.h"

namespace muster::preflight {

const char* SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kNote:
      return "note";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      break;
  }
  return "error";
}

std::string ToLine(const Finding& finding) {
  std::string line = finding.check + ": ";
  if (!finding.host.empty()) line += finding.host + ": ";
  line += finding.value;
  if (!finding.majority.empty()) line += " (most hosts: " + finding.majority + ")";
  if (!finding.fix.empty()) line += "; fix: " + finding.fix;
  return line;
}

}  // namespace muster::preflight
