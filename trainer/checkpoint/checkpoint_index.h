#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

// index.json of a checkpoint folder: what is in it, with global shapes, so that a reader with
// another layout of ranks finds every piece. Values and their JSON; no files here. Described in
// docs/training.md.

namespace muster::checkpoint {

// How far the run had come.
struct Progress {
  int64_t iteration = 0;
  int64_t consumed_train_samples = 0;
  int64_t consumed_valid_samples = 0;
  int64_t optimizer_step = 0;

  friend bool operator==(const Progress&, const Progress&) = default;
};

struct ShardEntry {
  std::string file;  // relative to the folder
  uint64_t bytes = 0;
  uint32_t crc32c = 0;

  friend bool operator==(const ShardEntry&, const ShardEntry&) = default;
};

// A piece of a tensor: the tensor of the same name in that shard, put at `offset` of the whole.
struct TensorPart {
  int64_t shard = 0;
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;

  friend bool operator==(const TensorPart&, const TensorPart&) = default;
};

struct TensorEntry {
  std::string dtype;  // safetensors' names
  std::vector<int64_t> shape;
  std::vector<TensorPart> parts;

  friend bool operator==(const TensorEntry&, const TensorEntry&) = default;
};

struct CheckpointIndex {
  Progress progress;
  // Flags that must agree when resuming (the learning rate schedule), as text.
  std::map<std::string, std::string> schedule;
  // All flags of the run that wrote it; for people.
  std::map<std::string, std::string> arguments;
  std::vector<ShardEntry> shards;
  std::map<std::string, TensorEntry> tensors;

  friend bool operator==(const CheckpointIndex&, const CheckpointIndex&) = default;
};

std::string ToJson(const CheckpointIndex& index);
// Throws CheckpointError with the reason when the text is not an index of a version that is known
// here, when a part lies outside its tensor, or when a shard's name leaves the folder.
CheckpointIndex IndexFromJson(const std::string& text);

}  // namespace muster::checkpoint
