#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace muster::facts {

using Environment = std::vector<std::pair<std::string, std::string>>;

// The value of a variable; "" when there is none.
std::string ValueOf(const Environment& environment, const std::string& name);

struct ToolOutput {
  bool found = true;    // false: there is no such program in PATH
  std::string failure;  // why there is no exit code: "no answer within the time limit"
  int exit_code = -1;
  std::string out;  // at most 1 MiB
  std::string err;
};

// Runs a program with this environment, looked up in its PATH, and reads what it says until it
// ends. At the deadline it is killed. Its children are left alone: they are of the caller's process
// group, as the program is, and end with that (ProbeHelper). Blocks; any thread.
ToolOutput RunTool(std::vector<std::string> argv, const Environment& environment,
                   std::chrono::steady_clock::time_point deadline);

}  // namespace muster::facts
