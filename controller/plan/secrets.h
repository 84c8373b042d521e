#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/plan/recipe.h"

// Secrets of a recipe: values that ranks get in their environment and that are shown nowhere.

namespace muster::plan {

// A path of the recipe: relative to the recipe's folder, `~/` is the submitter's home.
std::string ResolvePath(const std::string& path, const Recipe& recipe,
                        const Surroundings& surroundings);

// Reads each secret from its file (relative to the recipe's folder; ~/ is the home folder; one
// newline at the end is dropped) or from the submitter's environment. InvalidArgument names the
// secret, never a value.
absl::StatusOr<std::vector<v1::EnvVar>> ResolveSecrets(const Recipe& recipe,
                                                       const Surroundings& surroundings);

// InvalidArgument if a secret's value also stands in the job's argv, flags or [env], where others
// can read it. Names the secret and the place. Values shorter than eight bytes are not looked for:
// they would turn up by chance.
absl::Status CheckNotExposed(const v1::JobSpec& spec);

// Whether a variable holds a secret by what it is called: WANDB_API_KEY, HF_TOKEN, PGPASSWORD.
bool IsSecretName(std::string_view name);

// `text` with each secret's value, where it should not be, replaced by "****". Values shorter than
// four bytes are left: they would turn up by chance.
std::string MaskSecrets(std::string text, const std::vector<v1::EnvVar>& secrets);

}  // namespace muster::plan
