#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster {

// A program to start. Descriptors are borrowed; every other one of ours must be close-on-exec, or
// `close_others` is set.
struct SpawnOptions {
  enum class Group {
    kOurs,        // ends with us at Ctrl-C
    kOwn,         // can be killed whole, by kill(-pid)
    kOwnSession,  // neither Ctrl-C nor a question on our terminal
  };

  std::vector<std::string> words;  // argv
  std::string program{};           // path; empty: words[0], looked up in PATH if it has no slash
  std::optional<std::vector<std::string>> environment{};  // NAME=VALUE; none: ours
  std::string folder{};                                   // where it starts; empty: where we are
  int in = -1;                                            // -1: /dev/null
  int out = -1;                                           // -1: /dev/null
  int err = -1;                                           // -1: /dev/null
  std::vector<std::pair<int, int>> pass{};  // further descriptors, {ours, theirs}, theirs above 2
  bool close_others = false;                // all above 2; not with `pass`
  Group group = Group::kOurs;
};

// Starts it with default signals, none of them blocked. The caller reaps it. The error names the
// program. Any thread: nothing of ours runs between fork and exec.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// "NAME=VALUE" of each pair.
std::vector<std::string> JoinEnvironment(
    const std::vector<std::pair<std::string, std::string>>& environment);

// "exited with 3", "was ended by signal 9": of a status from waitpid.
std::string DescribeWaitStatus(int wait_status);

}  // namespace muster
