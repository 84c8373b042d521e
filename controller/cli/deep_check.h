#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/cli/client.h"
#include "controller/cli/signals.h"
#include "muster/v1/control.pb.h"

// `muster check --deep`: an ordinary short job that runs muster-commtest as the ranks of the job
// that is checked.

namespace muster::cli {

// The job: hosts, ranks, transport, environment and checks of `spec`, and as its command the
// muster-commtest beside this program.
v1::JobSpec DeepSpec(const v1::JobSpec& spec, bool json);

struct DeepResult {
  v1::Job job;         // as it ended
  std::string report;  // what its rank 0 printed
};

// Submits it and waits for its end; Ctrl-C stops it. The error says why there is no report.
absl::StatusOr<DeepResult> RunDeepCheck(Client& client, SignalWait& signals,
                                        const v1::JobSpec& deep_spec);

// The JSON of `muster check` with the outcome of both, and the report as "deep" (null without one).
std::string DeepCheckJson(const v1::CheckResponse& checked, const DeepResult& deep);

}  // namespace muster::cli
