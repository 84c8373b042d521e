#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/preflight/finding.h"
#include "muster/v1/worker.pb.h"

// Facts from every node -> findings. Pure: all nodes are compared with each other in one call, so
// that the odd one out is named beside what the others have.

namespace muster::preflight {

// A node's clock against the controller's, as a probe's round trip shows it.
struct ClockOffset {
  int64_t offset_ns = 0;       // node minus controller
  int64_t uncertainty_ns = 0;  // half the round trip
};

struct NodeFacts {
  std::string host;
  std::vector<uint32_t>
      devices;  // device numbers that the plan uses here; empty for a job without devices
  v1::WorkerHello hello;
  v1::ProbeResult probe;
  std::optional<ClockOffset> clock;
};

struct Options {
  std::set<std::string> skip;      // names of checks, see CheckNames()
  std::string controller_version;  // to compare the workers' with; empty = not compared
  std::string working_dir;
  std::string program;  // argv[0] as the user wrote it
};

// Every name that `skip_checks` may hold, in the order in which they run.
const std::vector<std::string>& CheckNames();

// InvalidArgument for a name that is none, with the nearest one.
absl::Status ValidateSkip(const std::vector<std::string>& names);

// `nodes` in rank order; the first is the head. Findings in the order of CheckNames(), then of
// nodes.
std::vector<Finding> Check(const std::vector<NodeFacts>& nodes, const Options& options);

// Whether any finding keeps the job from starting.
bool HasError(const std::vector<Finding>& findings);

}  // namespace muster::preflight
