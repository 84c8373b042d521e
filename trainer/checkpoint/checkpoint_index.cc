#include "trainer/checkpoint/checkpoint_index.h"

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "trainer/config/error.h"

namespace muster::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kFormat[] = "muster-checkpoint";
constexpr int kVersion = 1;

std::string Hex(uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

uint32_t FromHex(const std::string& text) {
  size_t used = 0;
  const unsigned long value = std::stoul(text, &used, 16);
  if (used != text.size() || text.size() != 8) throw std::invalid_argument("crc32c '" + text + "'");
  return static_cast<uint32_t>(value);
}

int64_t Elements(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

void CheckPart(const std::string& name, const TensorEntry& tensor, const TensorPart& part,
               size_t shards) {
  const auto fail = [&name](const char* reason) {
    throw std::invalid_argument("tensor " + name + ": " + reason);
  };
  if (part.shard < 0 || static_cast<size_t>(part.shard) >= shards) fail("no such shard");
  if (part.offset.size() != tensor.shape.size() || part.shape.size() != tensor.shape.size()) {
    fail("a part has another rank");
  }
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    if (part.offset[d] < 0 || part.shape[d] < 0 ||
        part.offset[d] > tensor.shape[d] - part.shape[d]) {
      fail("a part lies outside");
    }
  }
}

ShardEntry ReadShard(const Json& json) {
  ShardEntry shard{json.at("file"), json.at("bytes"), FromHex(json.at("crc32c"))};
  if (shard.file.empty() || shard.file.find('/') != std::string::npos ||
      shard.file.front() == '.') {
    throw std::invalid_argument("shard name '" + shard.file + "'");
  }
  return shard;
}

TensorEntry ReadTensor(const std::string& name, const Json& json, size_t shards) {
  TensorEntry tensor;
  int64_t covered = 0;
  json.at("dtype").get_to(tensor.dtype);
  json.at("shape").get_to(tensor.shape);
  for (const Json& item : json.at("parts")) {
    TensorPart part{item.at("shard"), item.at("offset"), item.at("shape")};
    CheckPart(name, tensor, part, shards);
    covered += Elements(part.shape);
    tensor.parts.push_back(std::move(part));
  }
  if (covered != Elements(tensor.shape)) {
    throw std::invalid_argument("tensor " + name + ": its parts don't make up the whole");
  }
  return tensor;
}

CheckpointIndex Read(const Json& json) {
  if (json.at("format") != kFormat) throw std::invalid_argument("not a muster-checkpoint");
  if (json.at("version") != kVersion) {
    throw std::invalid_argument("version " + json.at("version").dump() + " is not known here");
  }
  CheckpointIndex index;
  const Json& progress = json.at("progress");
  progress.at("iteration").get_to(index.progress.iteration);
  progress.at("consumed_train_samples").get_to(index.progress.consumed_train_samples);
  progress.at("consumed_valid_samples").get_to(index.progress.consumed_valid_samples);
  progress.at("optimizer_step").get_to(index.progress.optimizer_step);
  json.at("schedule").get_to(index.schedule);
  json.at("arguments").get_to(index.arguments);
  for (const Json& shard : json.at("shards")) index.shards.push_back(ReadShard(shard));
  for (const auto& [name, tensor] : json.at("tensors").items()) {
    index.tensors[name] = ReadTensor(name, tensor, index.shards.size());
  }
  return index;
}

}  // namespace

std::string ToJson(const CheckpointIndex& index) {
  Json json;
  json["format"] = kFormat;
  json["version"] = kVersion;
  json["progress"] = {{"iteration", index.progress.iteration},
                      {"consumed_train_samples", index.progress.consumed_train_samples},
                      {"consumed_valid_samples", index.progress.consumed_valid_samples},
                      {"optimizer_step", index.progress.optimizer_step}};
  json["schedule"] = index.schedule;
  json["arguments"] = index.arguments;
  json["shards"] = Json::array();
  for (const ShardEntry& shard : index.shards) {
    json["shards"].push_back(
        {{"file", shard.file}, {"bytes", shard.bytes}, {"crc32c", Hex(shard.crc32c)}});
  }
  json["tensors"] = Json::object();
  for (const auto& [name, tensor] : index.tensors) {
    Json parts = Json::array();
    for (const TensorPart& part : tensor.parts) {
      parts.push_back({{"shard", part.shard}, {"offset", part.offset}, {"shape", part.shape}});
    }
    json["tensors"][name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"parts", parts}};
  }
  return json.dump(1) + "\n";
}

CheckpointIndex IndexFromJson(const std::string& text) {
  try {
    return Read(Json::parse(text));
  } catch (const std::exception& error) {
    throw CheckpointError(std::string("index.json: ") + error.what());
  }
}

}  // namespace muster::checkpoint
