#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/checkpoint/safetensors_writer.h"

// The checkpoint folder (`--save`, `--load`):
//
//   latest_checkpointed_iteration.txt   the newest iteration; written last
//   iter_0000010/index.json             what the checkpoint holds
//   iter_0000010/shard_00000.safetensors
//
// A checkpoint is written as `.iter_0000010.tmp`, flushed and renamed, so that a kill at any moment
// leaves the previous one whole. One process writes; functions throw CheckpointError.

namespace muster::checkpoint {

// Writes one checkpoint and publishes it; a failure leaves nothing of it behind. `index` comes
// without shards and tensors; they are filled from `tensors`. Replaces a checkpoint of the same
// iteration.
void SaveCheckpoint(const std::filesystem::path& root, CheckpointIndex index,
                    const std::vector<NamedTensor>& tensors);

struct FoundCheckpoint {
  std::filesystem::path folder;
  CheckpointIndex index;
};

struct Search {
  std::optional<FoundCheckpoint> found;
  std::vector<std::string> skipped;  // "iter_0000010: shard_00000.safetensors: checksum differs"
};

// The newest whole checkpoint that the tracker file knows: a later one was not published. Without a
// readable tracker, the newest whole one. Whole: the index is sound, and all shards have its sizes
// and checksums.
Search FindNewestWhole(const std::filesystem::path& root);

// Copies the tensors of these names from the checkpoint into them; dtypes and shapes must agree.
void LoadTensors(const FoundCheckpoint& checkpoint, const std::vector<NamedTensor>& tensors);

std::string IterationFolder(int64_t iteration);  // "iter_0000010"

}  // namespace muster::checkpoint
