#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/log_rules.h"
#include "muster/v1/job.pb.h"

// Recipes: TOML job files (docs/recipe.md), and how they, the command line and the submitter's
// surroundings become a JobSpec.

namespace muster::plan {

// Where a secret's value comes from; exactly one is set. Values never stand in a recipe.
struct SecretSource {
  std::string name;
  std::string file;
  std::string env;
};

// A recipe as written, with nothing resolved.
struct Recipe {
  std::string source;  // path, for messages and for paths relative to it
  std::string text;
  std::string name;
  std::vector<std::string> command;
  std::optional<absl::Duration> grace;
  std::string working_dir;
  v1::Parallel parallel;
  std::vector<v1::Flag> flags;  // in file order
  std::vector<v1::EnvVar> env;
  std::vector<SecretSource> secrets;
  std::vector<std::string> skip_checks;
  std::string bind_to;                  // empty: not given
  uint32_t save_signal = 0;             // 0 = SIGTERM
  std::vector<std::string> rule_files;  // of `muster why`, as written
  LogWords logs;
};

// Pure. InvalidArgument: one "source:line:column: message" a line, in file order, at most 20.
absl::StatusOr<Recipe> ParseRecipe(std::string_view text, const std::string& source);

// What the command line of `submit` and `plan` says; it wins over the recipe.
struct Overrides {
  std::optional<std::string> name;
  std::optional<uint32_t> tp, pp, cp, vp;
  std::optional<uint32_t> micro_batch, global_batch, num_microbatches;
  std::optional<uint32_t> nnodes, nproc_per_node;
  std::optional<std::string> grace;  // "30", "30s", "2m"
  std::optional<std::string> working_dir;
  std::optional<std::string> bind_to;  // "numa", "none"
  std::vector<std::string> env_files;  // paths, in order; over the recipe, below `env`
  std::vector<std::string> env;  // NAME=VALUE, or NAME to take it from the submitter's environment
  std::vector<std::string> command;  // after `--`; replaces the recipe's
  LogWords logs;
};

// What the submitter's machine adds. A seam: tests give their own.
struct Surroundings {
  std::string bin_dir;  // folder of the running muster: a bare `muster-train` is looked for there
  std::string
      working_dir;  // default working folder of ranks, and what relative ones are relative to
  std::function<std::optional<std::string>(const std::string& name)> get_env;
  std::function<absl::StatusOr<std::string>(const std::string& path)> read_file;
  std::function<bool(const std::string& path)> is_executable;
  // What the submitter should know of what was found around; may be empty.
  std::function<void(const std::string& text)> note;

  static Surroundings Real(std::string bin_dir);
};

// A job from a recipe (null for a plain `-- COMMAND`) and the command line. The inventory, output
// folder and submitter are the caller's to add. Secrets are resolved here, and their values masked
// in JobSpec.recipe.
absl::StatusOr<v1::JobSpec> BuildJobSpec(const Recipe* recipe, const Overrides& overrides,
                                         const Surroundings& surroundings);

// Reads and parses `path`, then BuildJobSpec.
absl::StatusOr<v1::JobSpec> LoadRecipe(const std::string& path, const Overrides& overrides,
                                       const Surroundings& surroundings);

// "30", "30s", "1m30s", "250ms"; from 0 to 24 hours.
absl::StatusOr<absl::Duration> ParseGrace(std::string_view text);

}  // namespace muster::plan
