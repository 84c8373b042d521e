#include "controller/cli/job_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/cli/flags.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/nodes/transport.h"
#include "controller/preflight/checks.h"
#include "controller/why/rules.h"

namespace muster::cli {
namespace {

constexpr uint32_t kMostSize = 1'000'000'000;

void Size(CLI::App* app, const std::string& name, std::optional<uint32_t>* target,
          const std::string& group, const std::string& help) {
  NumberOption(app, name, target, 1, kMostSize, help)->group(group);
}

absl::StatusOr<std::string> CheckedTransport(std::string_view text) {
  MUSTER_RETURN_IF_ERROR(nodes::ParseTransports(text).status());
  return std::string(text);
}

absl::StatusOr<std::string> ParseText(std::string_view text) {
  return std::string(text);
}

// --flag NAME[=VALUE] replaces the recipe's flag of that name.
absl::Status ApplyFlags(const std::vector<std::string>& texts, v1::JobSpec* spec) {
  for (const std::string& text : texts) {
    std::string name = text.substr(0, text.find('='));
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    if (name.empty()) {
      return absl::InvalidArgumentError(
          fmt::format("--flag {}: write --flag NAME=VALUE or --flag NAME", text));
    }
    auto& flags = *spec->mutable_flags();
    auto found = std::find_if(flags.begin(), flags.end(),
                              [&](const v1::Flag& flag) { return flag.name() == name; });
    v1::Flag& flag = found == flags.end() ? *spec->add_flags() : *found;
    flag.set_name(name);
    flag.clear_values();
    if (text.find('=') != std::string::npos) flag.add_values(text.substr(text.find('=') + 1));
  }
  return absl::OkStatus();
}

std::string BinDir() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : self.parent_path().string();
}

absl::StatusOr<google::protobuf::Duration> ParseCheckTimeout(std::string_view text) {
  MUSTER_ASSIGN_OR_RETURN(const absl::Duration parsed, plan::ParseGrace(text));
  const int64_t ms = absl::ToInt64Milliseconds(parsed);
  if (ms == 0) return absl::InvalidArgumentError("no time at all: nobody could answer");
  google::protobuf::Duration duration;
  duration.set_seconds(ms / 1000);
  duration.set_nanos(static_cast<int32_t>(ms % 1000 * 1'000'000));
  return duration;
}

}  // namespace

absl::StatusOr<v1::PortRange> ParsePortRange(std::string_view text) {
  constexpr uint64_t kMostPort = 65535;
  const size_t dash = text.find('-');
  const auto first = ParseNumber(text.substr(0, dash), 1, kMostPort);
  const auto last =
      dash == std::string_view::npos ? first : ParseNumber(text.substr(dash + 1), 1, kMostPort);
  if (!first.ok() || !last.ok() || *first > *last) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a range of ports such as 29500-29600 (1 to 65535)", text));
  }
  v1::PortRange range;
  range.set_first(static_cast<uint32_t>(*first));
  range.set_last(static_cast<uint32_t>(*last));
  return range;
}

void AddJobFlags(CLI::App* app, JobFlags* flags) {
  plan::Overrides* overrides = &flags->overrides;
  app->add_option("RECIPE", flags->recipe, "TOML job file (docs/recipe.md)")->type_name("FILE");

  const std::string machines = "Machines";
  AddMachineFlags(app, &flags->machines);
  Size(app, "--nnodes", &overrides->nnodes, machines, "Use only the first N hosts");
  Size(app, "--nproc-per-node", &overrides->nproc_per_node, machines,
       "Ranks a node (default: its slots)");
  ParsedOption(app, "--transport", &flags->transport, CheckedTransport,
               "local|direct|ssh|openssh|command",
               "How hosts whose line says nothing are reached (docs/transports.md)")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join)
      ->group(machines);

  const std::string sizes = "Sizes";
  Size(app, "--tp", &overrides->tp, sizes, "Tensor parallel size");
  Size(app, "--pp", &overrides->pp, sizes, "Pipeline parallel size");
  Size(app, "--cp", &overrides->cp, sizes, "Context parallel size");
  Size(app, "--vp", &overrides->vp, sizes, "Virtual pipeline stages a rank");
  Size(app, "--micro-batch", &overrides->micro_batch, sizes, "Samples of one micro-batch");
  Size(app, "--global-batch", &overrides->global_batch, sizes, "Samples of one step, all ranks");
  Size(app, "--num-microbatches", &overrides->num_microbatches, sizes,
       "Micro-batches of one step, instead of --global-batch");

  const std::string job = "Job";
  ParsedOption(app, "--name", &overrides->name, ParseText, "NAME",
               "Name of the job and of its log files")
      ->group(job);
  app->add_option("--env", overrides->env,
                  "A variable for the ranks; without a value, as it is here (repeatable)")
      ->type_name("NAME[=V]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(job);
  app->add_option("--env-file", overrides->env_files,
                  "A file of NAME=VALUE lines for the ranks, over the recipe (repeatable)")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(job);
  ParsedOption(app, "--bind-to", &overrides->bind_to, ParseText, "numa|none",
               "CPUs of a rank: those of its device's NUMA node (default), or all")
      ->group(job);
  app->add_option("--flag", flags->flags, "A flag of muster-train over the recipe's (repeatable)")
      ->type_name("NAME[=V]")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(job);
  ParsedOption(app, "--grace", &overrides->grace, ParseText, "TIME",
               "Between SIGTERM and SIGKILL at a stop: 30s, 500ms, 2m")
      ->group(job);
  ParsedOption(app, "--workdir", &overrides->working_dir, ParseText, "DIR",
               "Working folder of the ranks, the same on every node (default: here)")
      ->group(job);
  app->add_option("--output", flags->output,
                  "Folder that gets <time>_<name>/ with the logs (default: output)")
      ->type_name("DIR")
      ->group(job);
  const std::string logs = "Logs (docs/logs.md)";
  ParsedOption(app, "--log-quota", &overrides->logs.quota, ParseText, "SIZE",
               "Of each stream of a rank, on its node (default: 1GiB; none)")
      ->group(logs);
  ParsedOption(app, "--log-policy", &overrides->logs.policy, ParseText,
               "block|drop-oldest-with-marker", "Past the quota (default: block)")
      ->group(logs);
  ParsedOption(app, "--log-rotate", &overrides->logs.rotate, ParseText, "SIZE",
               "Cut and pack log files of this size here (default: 1GiB; never)")
      ->group(logs);
  ParsedOption(app, "--log-keep", &overrides->logs.keep, ParseText, "TIME",
               "Remove the logs so long after the job's end: 30d, 12h (default: never)")
      ->group(logs);
  ParsedOption(app, "--log-keep-size", &overrides->logs.keep_size, ParseText, "SIZE",
               "Keep so much of the logs of an ended job (default: all)")
      ->group(logs);
  const std::string preflight = "Preflight";
  app->add_option("--skip", flags->skip, "Leave out a check (repeatable; docs/preflight.md)")
      ->type_name("CHECK")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(preflight);
  ParsedOption(app, "--port-range", &flags->port_range, ParsePortRange, "FIRST-LAST",
               "Ports that firewalls leave open: for MASTER_PORT and for the checks")
      ->group(preflight);
  ParsedOption(app, "--check-timeout", &flags->check_timeout, ParseCheckTimeout, "TIME",
               "For a host's hello, again for its answer (default 20s; refused: 4s)")
      ->group(preflight);
}

absl::StatusOr<v1::JobSpec> MakeJobSpec(const JobFlags& flags, const Invocation& invocation) {
  if (invocation.has_dashes && invocation.command.empty()) {
    return absl::InvalidArgumentError("no command after --");
  }
  plan::Overrides overrides = flags.overrides;
  overrides.command = invocation.command;
  plan::Surroundings surroundings = plan::Surroundings::Real(BinDir());
  surroundings.note = [](const std::string& text) { PrintError("environment: " + text); };
  MUSTER_ASSIGN_OR_RETURN(v1::JobSpec spec,
                          flags.recipe.empty()
                              ? plan::BuildJobSpec(nullptr, overrides, surroundings)
                              : plan::LoadRecipe(flags.recipe, overrides, surroundings));
  for (const v1::RuleFile& file : spec.rule_files()) {
    MUSTER_RETURN_IF_ERROR(why::ParseRules(file.text(), file.path()).status());
  }
  MUSTER_RETURN_IF_ERROR(ApplyFlags(flags.flags, &spec));
  MUSTER_ASSIGN_OR_RETURN(*spec.mutable_inventory(), ReadInventory(flags.machines));
  spec.mutable_skip_checks()->Add(flags.skip.begin(), flags.skip.end());
  MUSTER_RETURN_IF_ERROR(
      preflight::ValidateSkip({spec.skip_checks().begin(), spec.skip_checks().end()}));
  if (flags.port_range) *spec.mutable_port_range() = *flags.port_range;
  if (flags.check_timeout) *spec.mutable_check_timeout() = *flags.check_timeout;
  spec.set_default_transport(flags.transport);
  spec.set_output_root(
      std::filesystem::absolute(flags.output.empty() ? "output" : flags.output).lexically_normal());
  spec.set_submitter_uid(getuid());
  spec.set_submitter_gid(getgid());
  return spec;
}

}  // namespace muster::cli
