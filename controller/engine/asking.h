#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "controller/engine/context.h"

namespace muster::engine {

// --- asking.cc: who of a job's nodes is there, and what they are asked. For preflight_flow.cc.

// MakePlan; for a spec without a command a plan of its hosts, without argv.
absl::StatusOr<v1::Plan> PlanFor(const v1::JobSpec& spec);

// Time that a host has for its hello, and again for its answer.
milliseconds ConnectTimeout(const Context& c, const JobRun& job);
milliseconds ProbeTimeout(const Context& c, const JobRun& job);

// Marks nodes as absent whose worker answers under another host's name already: two links to one
// worker would cut each other off for ever.
void FindTwins(const Context& c, JobRun& job);

// Whether each node is up, or absent.
bool AllConnected(const Context& c, const JobRun& job);
// Whether each node has answered, or is absent.
bool AllAnswered(const JobRun& job);

// Asks every node that is up. All at the same time, since they try to reach each other.
void SendProbes(Context& c, JobRun& job);

// The job's nodes as preflight sees them.
std::vector<preflight::NodeFacts> FactsOf(Context& c, const JobRun& job);

// What is remembered of each node.
std::vector<v1::NodeCheck> NodeChecks(Context& c, const JobRun& job,
                                      const std::vector<preflight::Finding>& findings);

v1::Finding ToProto(const preflight::Finding& finding);

}  // namespace muster::engine
