#include "trainer/data/megatron_key.h"

#include <filesystem>

#include "trainer/data/python_json.h"

namespace muster::data {
namespace {

namespace json = python_json;

const char* ClassName(const Part& part) {
  return part.prefix.empty() ? "MockGPTDataset" : "GPTDataset";
}

// Python's first book-end is the integer 0, the others are floats.
std::string SplitMatrix(const std::string& shares) {
  std::vector<std::string> matrix;
  for (const auto& share : ParseSplit(shares)) {
    if (!share) {
      matrix.emplace_back(json::kNull);
      continue;
    }
    const std::string begin = matrix.empty() ? json::Integer(0) : json::Float(share->first);
    matrix.push_back(json::List({begin, json::Float(share->second)}));
  }
  return json::List(matrix);
}

}  // namespace

std::string DescriptionOf(const DataConfig& config, const Part& part,
                          const std::optional<std::string>& shares) {
  return json::Dict({{"class", json::Text(ClassName(part))},
                     {"dataset_path", part.prefix.empty() ? json::kNull : json::Text(part.prefix)},
                     {"num_samples", part.samples ? json::Integer(*part.samples) : json::kNull},
                     {"index_split", json::Text(NameOf(part.split))},
                     {"random_seed", json::Integer(config.seed)},
                     {"sequence_length", json::Integer(config.seq_length)},
                     {"split", shares ? json::Text(*shares) : json::kNull},
                     {"split_matrix", shares ? SplitMatrix(*shares) : json::kNull},
                     {"tokenizer", config.tokenizer_identity}});
}

CacheKey PartKey(const DataConfig& config, const Part& part, std::string description) {
  const std::string name = ClassName(part);
  const std::string beside =
      (std::filesystem::path(part.prefix) / "cache" / (name + "_indices")).string();
  return {.folder = config.data_cache_path.empty() ? beside : config.data_cache_path,
          .class_name = name,
          .split = NameOf(part.split),
          .description = std::move(description)};
}

CacheKey BlendKey(const DataConfig& config, Split split, const std::vector<std::string>& parts,
                  const std::vector<std::string>& weights, const std::string& size) {
  const std::string name = "BlendedDataset";
  return {.folder = config.data_cache_path,
          .class_name = name,
          .split = NameOf(split),
          .description = json::Dict({{"class", json::Text(name)},
                                     {"datasets", json::List(parts)},
                                     {"split", json::Text(NameOf(split))},
                                     {"weights", json::List(weights)},
                                     {"size", size}})};
}

}  // namespace muster::data
