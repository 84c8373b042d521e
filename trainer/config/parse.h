#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/train_config.h"

// argv -> TrainConfig. Pure.

namespace muster::config {

enum class Action { kTrain, kHelp, kVersion, kPrintConfig };

struct CommandLine {
  Action action = Action::kTrain;
  TrainConfig config;
  // Where a value that is not the default came from: flag name -> "command line", "config.json",
  // "derived".
  std::map<std::string, std::string, std::less<>> origins;
  // Flags that were given and change nothing here: name -> words.
  std::map<std::string, std::string, std::less<>> without_effect;

  bool Given(std::string_view flag) const { return origins.contains(flag); }
};

// Reads the words after the program's name: `--flag`, `--flag value`, `--flag=value`, `--list a b
// c`; a flag given twice keeps its last value. Throws ConfigError naming the flag, what is wrong
// and, for an unknown one, the nearest.
CommandLine Parse(const std::vector<std::string>& words);

}  // namespace muster::config
