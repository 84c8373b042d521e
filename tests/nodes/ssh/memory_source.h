#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "controller/nodes/ssh/config_source.h"
#include "controller/nodes/ssh/pattern.h"

namespace muster::nodes::ssh {

// A machine that is not there: files by path, an environment, commands that say yes.
class MemorySource : public ConfigSource {
 public:
  absl::StatusOr<std::optional<std::string>> Read(const std::string& path, bool) override {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  }
  std::vector<std::string> Glob(const std::string& pattern) override {
    std::vector<std::string> paths;
    for (const auto& [path, text] : files) {
      if (MatchPattern(path, pattern)) paths.push_back(path);
    }
    return paths;
  }
  absl::StatusOr<bool> Run(const std::string& command) override {
    commands.push_back(command);
    return command.substr(0, 4) == "true";
  }
  std::optional<std::string> Env(const std::string& name) const override {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  }
  LocalUser User() const override {
    return {.name = "ada", .home = "/home/ada", .host = "desk.example.net", .uid = 1000};
  }

  std::map<std::string, std::string> files;
  std::map<std::string, std::string> environment;
  std::vector<std::string> commands;
};

}  // namespace muster::nodes::ssh
