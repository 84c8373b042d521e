#pragma once

#include "controller/engine/action.h"
#include "controller/engine/event.h"
#include "controller/engine/state.h"

namespace muster::engine {

struct Step {
  State state;
  Actions actions;
};

// The engine: everything that Muster decides about jobs. Pure: no clock, no I/O, no threads; the
// same state and event give the same step. Unknown jobs, hosts, attempts and timers that have
// become meaningless are ignored.
Step Reduce(State state, const Event& event);

}  // namespace muster::engine
