#pragma once

#include <ATen/core/Tensor.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

// Reading tests/golden/llama: see its README for what each file holds.

namespace muster::testing {

inline std::filesystem::path GoldenPath(const std::string& file) {
  const char* const root = std::getenv("MUSTER_GOLDEN");
  if (root == nullptr) throw std::runtime_error("MUSTER_GOLDEN is not set: run through ctest");
  return std::filesystem::path(root) / "llama" / file;
}

inline nlohmann::json GoldenJson(const std::string& file) {
  std::ifstream in(GoldenPath(file));
  return nlohmann::json::parse(in);
}

}  // namespace muster::testing
