#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <fmt/format.h>

#include <algorithm>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/plan/env_file.h"
#include "controller/plan/recipe.h"
#include "controller/plan/secrets.h"

namespace muster::plan {
namespace {

struct CountOverride {
  std::string_view flag;
  const std::optional<uint32_t>& value;
};

// Zero means "not given" in a JobSpec, so it may not come from a person.
absl::Status CheckCounts(const Overrides& o) {
  for (const CountOverride& count :
       {CountOverride{"--tp", o.tp}, CountOverride{"--pp", o.pp}, CountOverride{"--cp", o.cp},
        CountOverride{"--vp", o.vp}, CountOverride{"--micro-batch", o.micro_batch},
        CountOverride{"--global-batch", o.global_batch},
        CountOverride{"--num-microbatches", o.num_microbatches},
        CountOverride{"--nnodes", o.nnodes}, CountOverride{"--nproc-per-node", o.nproc_per_node}}) {
    if (count.value == 0U) {
      return absl::InvalidArgumentError(fmt::format("{} must be at least 1", count.flag));
    }
  }
  if (o.global_batch && o.num_microbatches) {
    return absl::InvalidArgumentError(
        "--global-batch and --num-microbatches are both given: give one, the other follows from "
        "it");
  }
  return absl::OkStatus();
}

void ApplySizes(const Overrides& o, v1::Parallel& out) {
  if (o.tp) out.set_tp(*o.tp);
  if (o.pp) out.set_pp(*o.pp);
  if (o.cp) out.set_cp(*o.cp);
  if (o.vp) out.set_vp(*o.vp);
  if (o.micro_batch) out.set_micro_batch(*o.micro_batch);
  if (o.global_batch || o.num_microbatches) {
    out.set_global_batch(o.global_batch.value_or(0));
    out.set_num_microbatches(o.num_microbatches.value_or(0));
  }
}

void SetVariable(const std::string& name, const std::string& value, v1::JobSpec& out) {
  for (v1::EnvVar& variable : *out.mutable_env()) {
    if (variable.name() != name) continue;
    variable.set_value(value);
    return;
  }
  v1::EnvVar& variable = *out.add_env();
  variable.set_name(name);
  variable.set_value(value);
}

// --env NAME=VALUE, or NAME for the submitter's own value.
absl::Status ApplyEnv(const Overrides& overrides, const Surroundings& surroundings,
                      v1::JobSpec& out) {
  for (const std::string& text : overrides.env) {
    const size_t equal = text.find('=');
    const std::string name = text.substr(0, equal);
    if (name.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("--env {}: write --env NAME=VALUE or --env NAME", text));
    }
    if (equal != std::string::npos) {
      SetVariable(name, text.substr(equal + 1), out);
      continue;
    }
    const std::optional<std::string> value = surroundings.get_env(name);
    if (!value) {
      return absl::InvalidArgumentError(
          fmt::format("--env {}: {} is not set here; write --env {}=VALUE", name, name, name));
    }
    SetVariable(name, *value, out);
  }
  return absl::OkStatus();
}

void SetAll(const EnvFileResult& file, const Recipe* recipe, const Surroundings& surroundings,
            v1::JobSpec& out) {
  const auto is_secret = [recipe](const std::string& name) {
    return recipe != nullptr &&
           std::any_of(recipe->secrets.begin(), recipe->secrets.end(),
                       [&name](const SecretSource& secret) { return secret.name == name; });
  };
  for (const v1::EnvVar& variable : file.variables) {
    if (!is_secret(variable.name())) SetVariable(variable.name(), variable.value(), out);
  }
  if (!surroundings.note || file.variables.empty()) return;
  surroundings.note(fmt::format("{} variable{} of {}", file.variables.size(),
                                file.variables.size() == 1 ? "" : "s", file.path));
}

// Files, the recipe, more files, the command line: each over the one before.
absl::Status SetEnvironment(const Recipe* recipe, const Overrides& overrides,
                            const Surroundings& surroundings, v1::JobSpec& out) {
  MUSTER_ASSIGN_OR_RETURN(const auto own, ReadOwnEnvFiles(out.working_dir(), surroundings));
  for (const EnvFileResult& file : own) SetAll(file, recipe, surroundings, out);
  if (recipe != nullptr) {
    for (const v1::EnvVar& variable : recipe->env) {
      SetVariable(variable.name(), variable.value(), out);
    }
  }
  for (const std::string& path : overrides.env_files) {
    const auto file = ReadEnvFile(path, surroundings);
    if (!file.ok()) return Annotate(file.status(), "--env-file");
    SetAll(*file, recipe, surroundings, out);
  }
  return ApplyEnv(overrides, surroundings, out);
}

// Variables that are secrets by their names are kept as such, wherever they came from.
void HideSecrets(v1::JobSpec& out) {
  auto& env = *out.mutable_env();
  for (const v1::EnvVar& variable : env) {
    if (IsSecretName(variable.name())) *out.add_secrets() = variable;
  }
  env.erase(std::remove_if(env.begin(), env.end(),
                           [](const v1::EnvVar& v) { return IsSecretName(v.name()); }),
            env.end());
}

absl::Status SetBinding(const Recipe* recipe, const Overrides& overrides, v1::JobSpec& out) {
  static const std::vector<std::string> kBindings = {"numa", "none"};
  const std::string word = overrides.bind_to.value_or(recipe == nullptr ? "" : recipe->bind_to);
  if (!word.empty() && std::find(kBindings.begin(), kBindings.end(), word) == kBindings.end()) {
    return absl::InvalidArgumentError(
        fmt::format("bind-to '{}': numa or none{}", word, DidYouMean(word, kBindings)));
  }
  out.set_bind_to(word);
  return absl::OkStatus();
}

std::string Absolute(const std::string& path, const std::string& base) {
  if (path.empty()) return base;
  return path[0] == '/' ? path : base + "/" + path;
}

// The installation's own trainer, so that a recipe need not know where it is.
std::string FindProgram(const std::string& program, const Surroundings& surroundings) {
  if (program != "muster-train" || surroundings.bin_dir.empty()) return program;
  const std::string path = surroundings.bin_dir + "/" + program;
  return surroundings.is_executable(path) ? path : program;
}

void ApplyRecipe(const Recipe& recipe, v1::JobSpec& out) {
  out.set_name(recipe.name);
  *out.mutable_parallel() = recipe.parallel;
  out.mutable_flags()->Assign(recipe.flags.begin(), recipe.flags.end());
  out.mutable_skip_checks()->Assign(recipe.skip_checks.begin(), recipe.skip_checks.end());
  out.mutable_command()->Assign(recipe.command.begin(), recipe.command.end());
}

absl::Status ReadRuleFiles(const Recipe& recipe, const Surroundings& surroundings,
                           v1::JobSpec& out) {
  for (const std::string& path : recipe.rule_files) {
    v1::RuleFile& file = *out.add_rule_files();
    file.set_path(ResolvePath(path, recipe, surroundings));
    auto text = surroundings.read_file(file.path());
    if (!text.ok()) {
      return Annotate(text.status(), fmt::format("{}: [why] rules", recipe.source));
    }
    file.set_text(*std::move(text));
  }
  return absl::OkStatus();
}

void SetGrace(absl::Duration grace, v1::JobSpec& out) {
  const int64_t seconds = absl::IDivDuration(grace, absl::Seconds(1), &grace);
  out.mutable_grace()->set_seconds(seconds);
  out.mutable_grace()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(grace)));
}

}  // namespace

absl::StatusOr<absl::Duration> ParseGrace(std::string_view text) {
  const absl::string_view word(text.data(), text.size());
  absl::Duration out;
  double seconds = 0;
  const bool plain = absl::SimpleAtod(word, &seconds);
  if (plain) out = absl::Seconds(seconds);
  if ((!plain && !absl::ParseDuration(word, &out)) || out < absl::ZeroDuration() ||
      out > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        fmt::format("bad grace '{}': seconds, or a text such as 30s or 2m, at most 24h", text));
  }
  return out;
}

absl::StatusOr<v1::JobSpec> BuildJobSpec(const Recipe* recipe, const Overrides& overrides,
                                         const Surroundings& surroundings) {
  MUSTER_RETURN_IF_ERROR(CheckCounts(overrides));
  v1::JobSpec out;
  if (recipe != nullptr) ApplyRecipe(*recipe, out);
  if (overrides.name) out.set_name(*overrides.name);
  ApplySizes(overrides, *out.mutable_parallel());
  out.set_nnodes(overrides.nnodes.value_or(0));
  out.set_nproc_per_node(overrides.nproc_per_node.value_or(0));
  if (!overrides.command.empty()) {
    out.mutable_command()->Assign(overrides.command.begin(), overrides.command.end());
  }
  if (out.command_size() == 0) {
    return absl::InvalidArgumentError(
        recipe == nullptr
            ? "no command: give a recipe, or -- COMMAND ARGS..."
            : fmt::format("{}: no command: write [job] command = [\"muster-train\"], or give -- "
                          "COMMAND ARGS...",
                          recipe->source));
  }
  out.set_command(0, FindProgram(out.command(0), surroundings));
  MUSTER_RETURN_IF_ERROR(SetBinding(recipe, overrides, out));

  const std::string recipe_dir = recipe == nullptr ? "" : recipe->working_dir;
  out.set_working_dir(
      Absolute(overrides.working_dir.value_or(recipe_dir), surroundings.working_dir));
  MUSTER_RETURN_IF_ERROR(SetEnvironment(recipe, overrides, surroundings, out));
  if (recipe != nullptr && recipe->grace) SetGrace(*recipe->grace, out);
  if (overrides.grace) {
    const absl::StatusOr<absl::Duration> grace = ParseGrace(*overrides.grace);
    if (!grace.ok()) return Annotate(grace.status(), "--grace");
    SetGrace(*grace, out);
  }
  MUSTER_ASSIGN_OR_RETURN(
      *out.mutable_logs(),
      MakeLogRules(recipe == nullptr ? LogWords() : recipe->logs, overrides.logs));
  if (recipe != nullptr) {
    MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::EnvVar> secrets,
                            ResolveSecrets(*recipe, surroundings));
    out.mutable_secrets()->Assign(secrets.begin(), secrets.end());
    MUSTER_RETURN_IF_ERROR(CheckNotExposed(out));
  }
  HideSecrets(out);
  if (recipe != nullptr) {
    out.set_recipe(MaskSecrets(recipe->text, {out.secrets().begin(), out.secrets().end()}));
    out.set_save_signal(recipe->save_signal);
    MUSTER_RETURN_IF_ERROR(ReadRuleFiles(*recipe, surroundings, out));
  }
  return out;
}

absl::StatusOr<v1::JobSpec> LoadRecipe(const std::string& path, const Overrides& overrides,
                                       const Surroundings& surroundings) {
  MUSTER_ASSIGN_OR_RETURN(const std::string text, surroundings.read_file(path));
  MUSTER_ASSIGN_OR_RETURN(const Recipe recipe, ParseRecipe(text, path));
  return BuildJobSpec(&recipe, overrides, surroundings);
}

}  // namespace muster::plan
