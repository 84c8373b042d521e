#pragma once

#include <cstdint>

#include "muster/v1/job.pb.h"
#include "muster/v1/worker.pb.h"

namespace muster::preflight {

// The question to node `node` of a planned job: working folder, program, the files that the trainer
// will open, and on the head a free port, to be held for the attempt. The caller sets probe_id and
// id. Pure.
v1::Probe MakeProbe(const v1::JobSpec& spec, const v1::Plan& plan, uint32_t node);

}  // namespace muster::preflight
