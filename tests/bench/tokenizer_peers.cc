#include "tests/bench/tokenizer_peers.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

namespace muster::bench {
namespace {

namespace fs = std::filesystem;

// A word for the shell.
std::string Quote(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

TokenizerBench::TokenizerBench(fs::path source, const std::string& corpus, int megabytes)
    : source_(std::move(source)) {
  std::string pattern = (fs::temp_directory_path() / "muster_bench_XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
  folder_ = pattern;
  std::string arguments =
      "prepare " + Quote(folder_.string()) + " --megabytes " + std::to_string(megabytes);
  if (!corpus.empty()) arguments += " --corpus " + Quote(corpus);
  try {
    RunScript(arguments);
  } catch (const std::runtime_error&) {
    fs::remove_all(folder_);
    throw;
  }
}

TokenizerBench::~TokenizerBench() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TokenizerBench::RunScript(const std::string& arguments) const {
  const std::string command = Quote((source_ / ".venv/bin/python").string()) + " " +
                              Quote((source_ / "tests/bench/tokenizer_peers.py").string()) + " " +
                              arguments;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen " + command);
  std::string output;
  char buffer[4096];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
    output.append(buffer, n);
  }
  if (::pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return output;
}

std::vector<std::string> TokenizerBench::ReadTexts() const {
  std::vector<std::string> texts;
  std::ifstream in(corpus());
  for (std::string line; std::getline(in, line);) {
    texts.push_back(nlohmann::json::parse(line).at("text"));
  }
  return texts;
}

Speed TokenizerBench::MeasurePeer(const std::string& peer, int passes) const {
  const auto figures = nlohmann::json::parse(RunScript(
      "measure " + peer + " " + Quote(folder_.string()) + " --passes " + std::to_string(passes)));
  return {figures.at("bytes"), figures.at("tokens"), figures.at("seconds")};
}

}  // namespace muster::bench
