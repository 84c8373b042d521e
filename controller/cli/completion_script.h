#pragma once

#include <string>
#include <string_view>
#include <vector>

// Shell completion from a description of the command line. Pure.

namespace muster::cli {

struct FlagWords {
  std::string name;        // "--hostfile"
  std::string short_name;  // "-f" or empty
  std::string
      value;  // "FILE", "DIR", "JOB", "ssh|direct|local", other = anything; empty = takes none
  std::string help;
};

struct CommandWords {
  std::string name;
  std::string help;
  std::string positional;  // as FlagWords.value
  std::vector<FlagWords> flags;
};

std::string BashCompletion(const std::vector<CommandWords>& commands);
std::string ZshCompletion(const std::vector<CommandWords>& commands);
std::string FishCompletion(const std::vector<CommandWords>& commands);

}  // namespace muster::cli
