#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/safetensors_writer.h"
#include "trainer/config/model_config.h"

namespace muster::checkpoint {

// A folder with config.json and model.safetensors, or else shards listed in
// model.safetensors.index.json. Immutable after construction. Throws CheckpointError naming the
// file.
class HfFolder {
 public:
  explicit HfFolder(const std::filesystem::path& folder);

  const config::ModelConfig& model() const { return model_; }
  // In name order.
  std::vector<std::string> names() const;
  bool Contains(const std::string& name) const { return readers_.contains(name); }
  // The tensor in the dtype of the file, its own copy.
  at::Tensor Load(const std::string& name) const;

 private:
  std::filesystem::path folder_;
  config::ModelConfig model_;
  std::map<std::string, std::shared_ptr<const SafetensorsReader>> readers_;  // by tensor name
};

// Reads config.json alone.
config::ModelConfig ReadHfModel(const std::filesystem::path& folder);

// Writes config.json and model.safetensors; each file is whole or absent. Throws CheckpointError.
void WriteHfFolder(const std::filesystem::path& folder, const std::string& config_json,
                   const std::vector<NamedTensor>& tensors);

}  // namespace muster::checkpoint
