#include "trainer/checkpoint/hf_folder.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "common/suggest.h"
#include "trainer/checkpoint/durable_file.h"
#include "trainer/checkpoint/hf_config.h"
#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr char kConfig[] = "config.json";
constexpr char kSingle[] = "model.safetensors";
constexpr char kShardIndex[] = "model.safetensors.index.json";

std::shared_ptr<const SafetensorsReader> Open(const fs::path& path) {
  try {
    return std::make_shared<SafetensorsReader>(path);
  } catch (const SafetensorsError& error) {
    throw CheckpointError(error.what());
  }
}

// Tensor name -> file name, from the index of a sharded model.
std::map<std::string, std::string> ReadWeightMap(const fs::path& path) {
  std::map<std::string, std::string> map;
  try {
    nlohmann::json::parse(ReadText(path)).at("weight_map").get_to(map);
  } catch (const nlohmann::json::exception& error) {
    throw CheckpointError(path.string() + ": " + error.what());
  }
  for (const auto& [name, file] : map) {
    if (file.empty() || file.find('/') != std::string::npos || file.front() == '.') {
      throw CheckpointError(path.string() + ": '" + name + "' lies in '" + file +
                            "', which is not a file of this folder");
    }
  }
  return map;
}

}  // namespace

config::ModelConfig ReadHfModel(const fs::path& folder) {
  const fs::path path = folder / kConfig;
  const std::string text = ReadText(path);
  try {
    return ModelFromHfConfig(text);
  } catch (const CheckpointError& error) {
    throw CheckpointError(path.string() + ": " + error.what());
  }
}

HfFolder::HfFolder(const fs::path& folder) : folder_(folder), model_(ReadHfModel(folder)) {
  // A single file goes before shards, as in transformers: --save-hf into a folder that had shards
  // is read back.
  std::error_code ignored;
  if (!fs::exists(folder / kSingle, ignored) && fs::exists(folder / kShardIndex, ignored)) {
    std::map<std::string, std::shared_ptr<const SafetensorsReader>> files;
    for (const auto& [name, file] : ReadWeightMap(folder / kShardIndex)) {
      auto& reader = files[file];
      if (reader == nullptr) reader = Open(folder / file);
      if (!reader->Contains(name)) {
        throw CheckpointError((folder / kShardIndex).string() + ": '" + name + "' is not in " +
                              file);
      }
      readers_[name] = reader;
    }
    return;
  }
  const auto reader = Open(folder / kSingle);
  for (const auto& [name, info] : reader->tensors()) readers_[name] = reader;
}

std::vector<std::string> HfFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, reader] : readers_) names.push_back(name);
  return names;
}

at::Tensor HfFolder::Load(const std::string& name) const {
  const auto it = readers_.find(name);
  if (it == readers_.end()) {
    throw CheckpointError(folder_.string() + ": no tensor '" + name + "'" +
                          DidYouMean(name, names()));
  }
  return it->second->Load(name);
}

void WriteHfFolder(const fs::path& folder, const std::string& config_json,
                   const std::vector<NamedTensor>& tensors) {
  MakeFolder(folder);
  ReplaceFile(folder / kConfig, config_json);
  const fs::path temporary = folder / (std::string(kSingle) + ".tmp");
  WriteSafetensors(temporary, tensors, {{"format", "pt"}});
  DurableRename(temporary, folder / kSingle);
}

}  // namespace muster::checkpoint
