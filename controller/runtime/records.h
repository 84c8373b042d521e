#pragma once

#include "controller/engine/state.h"
#include "controller/store/records.h"
#include "muster/v1/control.pb.h"

namespace muster::runtime {

// The engine's job as the store keeps it (secrets masked, without ranks), and back:
// `FromRecord(ToRecord(job))` with its ranks and secrets is engine::Durable(job).
store::JobRecord ToRecord(const engine::JobRun& job);
engine::JobRun FromRecord(const store::JobRecord& record);

// The job as the control service shows it; with its ranks if the record has them.
v1::Job ToView(const store::JobRecord& record);

}  // namespace muster::runtime
