#pragma once

#include "trainer/engine/engine.h"
#include "trainer/loop/run.h"

// The whole model's state on rank 0, of which every rank has a part: what checkpoints and Hugging
// Face folders hold, so that they are the same whatever the layout. Collective; throws CommError.

namespace muster::loop {

// On rank 0 the whole state (views of the engine's own where it has all of it); nothing elsewhere.
engine::State FetchWhole(Run& run, engine::Contents contents);

// `whole`, on rank 0, came from FetchWhole, its tensors changed in place; every rank takes its
// part. What it leaves out stays as it is. Not used on the other ranks. `contents` as there.
void StoreWhole(Run& run, const engine::State& whole, engine::Contents contents);

}  // namespace muster::loop
