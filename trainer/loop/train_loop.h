#pragma once

#include "trainer/config/error.h"
#include "trainer/loop/run.h"

namespace muster::loop {

// Trains from where LoadState left off to the end, or to a reason to leave before (SIGTERM,
// --exit-interval, --exit-duration-in-mins); evaluates and saves on the way. Returns kOk, or after
// SIGTERM kSignalSaved (kTerminated without --save). Throws the errors of error.h and
// data::DataError.
ExitCode TrainLoop(Run& run);

}  // namespace muster::loop
