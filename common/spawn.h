#pragma once

#include <absl/status/statusor.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace muster {

// A program to start. Descriptors are borrowed; every other one of ours must be close-on-exec.
struct SpawnOptions {
  std::vector<std::string> words;  // argv; the program is looked up in PATH if it has no slash
  int in = -1;                     // -1: /dev/null
  int out = -1;                    // -1: /dev/null
  int err = -1;                    // -1: /dev/null
};

// Starts it with this process's environment, in a session of its own (neither Ctrl-C nor a question
// on our terminal) and with default signals. The caller reaps it. The error names the program. Any
// thread: nothing runs between fork and exec.
absl::StatusOr<pid_t> SpawnInOwnSession(const SpawnOptions& options);

// "exited with 3", "was ended by signal 9": of a status from waitpid.
std::string DescribeWaitStatus(int wait_status);

}  // namespace muster
