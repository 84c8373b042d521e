#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <string>

#include "controller/cli/client.h"
#include "controller/cli/render.h"
#include "muster/v1/control.pb.h"

// One transfer as `muster stage` and `muster submit --stage` run and show it.

namespace muster::cli {

// Runs it to its end and shows on `fd` how far it is: one live line on a terminal, else a line now
// and then. The last response; an error is the controller's.
absl::StatusOr<v1::StageResponse> RunStage(Client& client, const v1::StageRequest& request, int fd,
                                           const Style& style);

// How far it is, without a line end: "staging 300 MiB: 45 %, 12/32 hosts, 180 MB/s, slowest n7 31
// %".
std::string StageProgressLine(const v1::StageResponse& news, double megabytes_per_second);

// What it came to, in lines; hosts that failed, were mended or are fed by the controller are named.
std::string StageText(const v1::StageRequest& request, const v1::StageResponse& end,
                      const Style& style);
std::string StageJson(const v1::StageRequest& request, const v1::StageResponse& end);
// 0; 121 a host has failed; 120 --dry-run found something missing or damaged.
int StageExitCode(const v1::StageRequest& request, const v1::StageResponse& end);

}  // namespace muster::cli
