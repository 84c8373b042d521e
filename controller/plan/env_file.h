#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/recipe.h"

// Files of environment variables: .muster_env, DeepSpeed's .deepspeed_env, and --env-file
// (docs/recipe.md).

namespace muster::plan {

struct EnvFileVariable {
  std::string name;
  std::optional<std::string> value;  // absent: the submitter's own
  uint32_t line = 0;

  bool operator==(const EnvFileVariable&) const = default;
};

// One NAME=VALUE or NAME a line, as a shell would read assignments, but for expansions: `export` in
// front, comments, blank lines, '...' and "..." around a value. Pure. InvalidArgument: one
// "source:line: message" a line, at most 20.
absl::StatusOr<std::vector<EnvFileVariable>> ParseEnvFile(std::string_view text,
                                                          const std::string& source);

struct EnvFileResult {
  std::string path;
  std::vector<v1::EnvVar> variables;  // a name once, with its last value
};

// The files that are read without being asked for: DeepSpeed's of the home folder and of
// `working_dir`, then Muster's of the same two. Those that do not exist are left out.
absl::StatusOr<std::vector<EnvFileResult>> ReadOwnEnvFiles(const std::string& working_dir,
                                                           const Surroundings& surroundings);

// A file that was asked for; relative to the submitter's folder, ~/ is the home folder.
absl::StatusOr<EnvFileResult> ReadEnvFile(const std::string& path,
                                          const Surroundings& surroundings);

}  // namespace muster::plan
