#include <absl/strings/str_cat.h>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {

void CheckStage(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (!node.absent.empty() || node.probe.stage_error().empty()) continue;
    out.push_back({"stage", Severity::kError, node.host, node.probe.stage_error(), "",
                   "submit with --stage again, which puts the tree on every host and mends it"});
  }
}

}  // namespace muster::preflight
