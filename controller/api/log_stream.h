#pragma once

#include <absl/status/status.h>

#include <functional>

#include "controller/api/backend.h"
#include "controller/logs/attempt_logs.h"
#include "muster/v1/control.pb.h"

namespace muster::api {

// Answers one Logs request on the calling thread, which it blocks: reads the job's files in the
// order in which lines were written and, with follow, waits for more until the attempt is complete.
// `send` gives a run to the viewer and blocks while the viewer is slow; false: the viewer has gone.
// `cancelled` is asked at least ten times a second.
absl::Status StreamLogs(const v1::LogsRequest& request, Backend& backend,
                        const logs::AttemptLogs& attempts,
                        const std::function<bool(v1::LogsResponse)>& send,
                        const std::function<bool()>& cancelled);

}  // namespace muster::api
