#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/loop/run.h"

// The run's state on disk: resuming, saving, Hugging Face folders. Rank 0 alone touches files; the
// others get what it read over the network, so no shared file system is needed. A failure on rank 0
// is told to all, and every rank throws CheckpointError.

namespace muster::loop {

// Where the weights came from, for people: "checkpoints/iter_0000010", a --load-hf folder, or
// "initial weights".
struct Start {
  checkpoint::Progress progress;
  std::string source;
  std::vector<std::string> skipped;  // checkpoints that could not be used, and why; on rank 0
};

// Fills model and optimizer: the newest whole checkpoint of --load, else --load-hf, else the
// initial weights stay.
Start LoadState(Run& run);

// Writes a checkpoint to --save; returns its folder. Collective.
std::string SaveState(Run& run, const checkpoint::Progress& progress);

// Writes --save-hf. Collective.
void SaveHuggingFace(Run& run);

}  // namespace muster::loop
