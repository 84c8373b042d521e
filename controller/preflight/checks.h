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
  int64_t uncertainty_ns = 0;  // half the time that the messages were on their way
};

// From the four times of a round trip, the time that the node needed for its answer left out.
ClockOffset OffsetOf(int64_t sent_ns, int64_t received_ns, int64_t answered_ns, int64_t back_ns);

struct NodeFacts {
  std::string host;
  std::vector<uint32_t>
      devices;  // device numbers that the plan uses here; empty for a job without devices
  bool needs_devices = false;  // without any, no rank can run here
  std::string data_addr;
  std::string absent;  // why there is no answer from it; then nothing below counts
  std::string twin;    // absent because its worker is this other host's
  v1::WorkerHello hello;
  v1::ProbeResult probe;
  std::optional<ClockOffset> clock;
};

struct Options {
  std::set<std::string> skip;      // names of checks, see CheckNames()
  std::string controller_version;  // to compare the workers' with; empty = not compared
  std::string working_dir;
  std::string program;  // argv[0] as the user wrote it
  std::string ports;    // those that firewalls must leave open: "20017, 25113, 30001"
};

// Every name that `skip_checks` may hold, in the order in which they run. Whether a host answers at
// all can't be skipped.
const std::vector<std::string>& CheckNames();

// InvalidArgument for a name that is none, with the nearest one.
absl::Status ValidateSkip(const std::vector<std::string>& names);

// `nodes` in rank order; the first is the head. Worst first, then in the order of CheckNames(),
// then of nodes.
std::vector<Finding> Check(const std::vector<NodeFacts>& nodes, const Options& options);

// Whether any finding keeps the job from starting.
bool HasError(const std::vector<Finding>& findings);

}  // namespace muster::preflight
