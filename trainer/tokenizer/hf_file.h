#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace muster::tokenizer {

// tokenizer.json with its two large tables apart: as a tree they would take most of the loading
// time.
struct HfFile {
  nlohmann::json rest;  // without model.vocab and model.merges
  std::vector<std::pair<std::string, int64_t>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;
};

// Any JSON file. Throws TokenizerError with the path, and the byte where it is not JSON.
nlohmann::json ReadJsonFile(const std::string& path);

// Throws TokenizerError likewise, and where an entry of a table is of the wrong kind.
HfFile ReadHfFile(const std::string& path);

// "left right", as merges are written in older files. Throws TokenizerError naming merge `rank`.
std::pair<std::string, std::string> SplitMerge(const std::string& line, size_t rank);

}  // namespace muster::tokenizer
