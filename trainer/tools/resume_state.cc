#include "trainer/tools/resume_state.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "trainer/data/data_error.h"
#include "trainer/data/partial_file.h"

namespace muster::tools {
namespace {

using data::DataError;
using nlohmann::json;

constexpr int kVersion = 1;

json ToJson(const InputPosition& position) {
  return {{"file", position.file},
          {"offset", position.offset},
          {"line", position.line},
          {"index", position.index},
          {"checksum", position.checksum}};
}

InputPosition PositionFrom(const json& value) {
  return {value.at("file"), value.at("offset"), value.at("line"), value.at("index"),
          value.at("checksum")};
}

json ToJson(const ResumeState& state) {
  json writers = json::array();
  for (const data::WriterState& writer : state.writers) {
    writers.push_back({writer.bin_bytes, writer.sequences, writer.documents});
  }
  return {{"version", kVersion},
          {"flags", state.identity.flags},
          {"files", state.identity.files},
          {"position", ToJson(state.position)},
          {"writers", writers},
          {"skipped_bytes", state.skipped_bytes},
          {"skipped", state.skipped},
          {"documents", state.documents},
          {"tokens", state.tokens},
          {"complete", state.complete}};
}

ResumeState StateFrom(const json& value) {
  if (value.at("version") != kVersion) throw DataError("another version of muster-preprocess");
  ResumeState state;
  value.at("flags").get_to(state.identity.flags);
  value.at("files").get_to(state.identity.files);
  state.position = PositionFrom(value.at("position"));
  for (const json& writer : value.at("writers")) {
    state.writers.push_back({writer.at(0), writer.at(1), writer.at(2)});
  }
  value.at("skipped_bytes").get_to(state.skipped_bytes);
  value.at("skipped").get_to(state.skipped);
  value.at("documents").get_to(state.documents);
  value.at("tokens").get_to(state.tokens);
  value.at("complete").get_to(state.complete);
  return state;
}

std::string Describe(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "";
  return fmt::format("{} bytes, changed at {}.{:09}", info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

std::string Words(const std::vector<std::string>& values) {
  std::string words;
  for (const std::string& value : values) words += " " + value;
  return words;
}

}  // namespace

std::string RunIdentity::DifferenceFrom(const RunIdentity& other) const {
  std::set<std::string> names;
  for (const auto& [name, values] : flags) names.insert(name);
  for (const auto& [name, values] : other.flags) names.insert(name);
  for (const std::string& name : names) {
    const auto now = flags.find(name);
    const auto then = other.flags.find(name);
    if (now == flags.end()) return fmt::format("it had {}{}", name, Words(then->second));
    if (then == other.flags.end()) return fmt::format("it had no {}", name);
    if (now->second != then->second) {
      return fmt::format("it had {}{}, not{}", name, Words(then->second), Words(now->second));
    }
  }
  for (const auto& [path, description] : files) {
    const auto then = other.files.find(path);
    if (then == other.files.end()) return path + " was not among its files";
    if (then->second != description) {
      return fmt::format("{} was changed meanwhile ({}; now {})", path, then->second, description);
    }
  }
  for (const auto& [path, description] : other.files) {
    if (!files.contains(path)) return path + " was among its files";
  }
  return "";
}

std::string ResumePath(const std::string& prefix) {
  return prefix + ".resume.json";
}

std::optional<ResumeState> ReadResumeState(const std::string& prefix) {
  const std::string path = ResumePath(prefix);
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) return std::nullopt;
    throw DataError("open " + path + ": " + std::strerror(errno));
  }
  try {
    return StateFrom(json::parse(file));
  } catch (const std::exception& error) {
    throw DataError(
        fmt::format("{} can't be used ({}); start again without --resume", path, error.what()));
  }
}

void WriteResumeState(const std::string& prefix, const ResumeState& state) {
  const std::string text = ToJson(state).dump(1) + "\n";
  data::PartialFile file(ResumePath(prefix));
  file.Write(text.data(), text.size());
  file.Publish();
}

void RemoveResumeState(const std::string& prefix) {
  ::unlink(ResumePath(prefix).c_str());
}

std::map<std::string, std::string> DescribeFiles(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> described;
  for (const std::string& path : paths) {
    if (path.empty() || path == "-") continue;
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      described[path] = Describe(path);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.is_regular_file(error)) described[entry.path()] = Describe(entry.path());
    }
  }
  return described;
}

}  // namespace muster::tools
