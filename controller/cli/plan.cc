// muster plan: what would run where, and whether it will fit. Needs no controller.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "common/status.h"
#include "controller/cli/command.h"
#include "controller/cli/data_files.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/flags.h"
#include "controller/cli/job_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/trainer_check.h"
#include "controller/plan/forecast.h"
#include "controller/plan/model_warnings.h"
#include "controller/plan/planner.h"
#include "controller/plan/recipe.h"
#include "controller/plan/render.h"
#include "controller/plan/script.h"
#include "controller/plan/text_table.h"
#include "controller/plan/trainer_flags.h"

namespace muster::cli {
namespace {

struct PlanFlags {
  JobFlags job;
  std::optional<double> device_memory;
  std::string constants;
  std::optional<uint32_t> rank;
  bool all_ranks = false;
  bool compare = false;
  uint32_t top = 0;
  bool script = false;
  uint32_t master_port = 29500;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Prints the sizes with their arithmetic, the hosts, which rank runs where with its coordinates, the
groups and which of them cross hosts, warnings; and for models whose flags say it (Megatron's names)
the layers of each stage, memory by part against the device's, and an estimate of speed. Hosts need
slots= (or gpus=) in the hostfile here, since no machine is asked. Formulas: docs/planning.md.

Examples:
  muster plan recipes/tiny_cpu.toml --hostfile hosts
  muster plan --host node[01-16]:8 --tp 2 --pp 4 -- python train.py
  muster plan recipes/llama3_70b.toml --hostfile hosts --device-memory 80GiB
  muster plan recipes/two_nodes_16_gpus.toml --hostfile hosts --compare --top 10
  muster plan recipes/two_nodes_16_gpus.toml --hostfile hosts --rank 9
  muster plan recipes/torchrun_any.toml --hostfile hosts --script > job.sh
  muster plan recipes/llama3_8b_fp8.toml --hostfile hosts --json | jq .dp

Exit codes: 0 ok; 2 the job can't be planned, or does not fit into the devices' memory (the message
  says why and what would do).
)";

struct Planned {
  v1::JobSpec spec;
  v1::Plan plan;
};

absl::StatusOr<Planned> MakePlanOf(const PlanFlags& flags, const Invocation& invocation) {
  Planned out;
  MUSTER_ASSIGN_OR_RETURN(out.spec, MakeJobSpec(flags.job, invocation));
  MUSTER_ASSIGN_OR_RETURN(out.plan, plan::MakePlan(out.spec));
  MUSTER_ASSIGN_OR_RETURN(const std::string remark, TrainerRemark(out.spec, out.plan));
  if (!remark.empty()) {
    out.plan.add_warnings("the muster-train of this installation can't run it: " + remark);
  }
  const auto files = FindDataFiles(plan::DataPrefixes(out.spec), out.spec.working_dir());
  for (std::string& warning : plan::DataWarnings(out.spec, out.plan, files)) {
    out.plan.add_warnings(std::move(warning));
  }
  return out;
}

absl::StatusOr<plan::ForecastOptions> MakeOptions(const PlanFlags& flags) {
  plan::ForecastOptions out;
  out.device_memory = flags.device_memory;
  if (flags.constants.empty()) return out;
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          plan::Surroundings::Real("").read_file(flags.constants));
  MUSTER_ASSIGN_OR_RETURN(out.constants, plan::ParseConstants(text, flags.constants));
  return out;
}

// True if the job's program takes these flags too, as far as can be seen from here.
bool Takes(const Planned& job, const plan::Advice& advice) {
  v1::JobSpec spec = job.spec;
  if (!plan::IsTrainer(spec)) return false;  // its command line is not ours to write
  for (const v1::Flag& flag : advice.flags) *spec.add_flags() = flag;
  const auto plan = plan::MakePlan(spec);
  return plan.ok() && TrainerRemark(spec, *plan).ok();
}

// What does not fit, and what would.
absl::Status TooLarge(const Planned& job, const plan::Forecast& forecast,
                      const plan::ForecastOptions& options) {
  constexpr size_t kMost = 5;
  std::vector<plan::Advice> found = plan::LayoutAdvice(job.spec, job.plan, options);
  for (plan::Advice& advice : plan::FlagAdvice(job.spec, job.plan, options)) {
    if (found.size() < kMost && Takes(job, advice)) found.push_back(std::move(advice));
  }
  std::string text =
      fmt::format("a rank needs {} GiB, its device has {} ({})", plan::GiB(forecast.Needed()),
                  plan::GiB(forecast.device->bytes), forecast.device->source);
  text += found.empty() ? "; no layout of these hosts fits: more hosts, or a smaller micro-batch"
                        : "; what would fit, best first:";
  for (const plan::Advice& advice : found) {
    text += fmt::format("\n{}  ({} GiB)", advice.text, plan::GiB(advice.bytes));
  }
  return absl::InvalidArgumentError(text);
}

absl::Status Print(const PlanFlags& flags, const Planned& job,
                   const plan::ForecastOptions& options) {
  const auto& [spec, plan] = job;
  const plan::Forecast forecast = plan::MakeForecast(spec, plan, options);
  if (flags.rank) {
    plan::Launch launch;
    launch.master_port = flags.master_port;
    launch.run_id = "plan";
    MUSTER_ASSIGN_OR_RETURN(const v1::RankSpec rank,
                            plan::MakeRankSpec(spec, plan, *flags.rank, launch));
    WriteAll(1, flags.json ? plan::ToJson(plan, spec, rank, forecast)
                           : plan::RenderRank(plan, spec, rank, forecast));
    return absl::OkStatus();
  }
  if (flags.script) {
    MUSTER_ASSIGN_OR_RETURN(const std::string script,
                            plan::RenderScript(spec, plan, {flags.master_port}));
    WriteAll(1, script);
    return absl::OkStatus();
  }
  if (flags.compare) {
    const auto rows = plan::CompareLayouts(spec, plan, options);
    WriteAll(1, flags.json
                    ? plan::ToJson(plan, forecast, rows)
                    : plan::RenderComparison(plan, forecast, rows, options.constants, flags.top));
    return absl::OkStatus();
  }
  const auto rank_rows = flags.all_ranks ? plan::RankRows::kAll : plan::RankRows::kFolded;
  WriteAll(1, flags.json ? plan::ToJson(plan, forecast)
                         : plan::RenderText(plan, rank_rows) +
                               plan::RenderForecast(plan, forecast, options.constants));
  return forecast.TooLarge() ? TooLarge(job, forecast, options) : absl::OkStatus();
}

int Run(const PlanFlags& flags, const Invocation& invocation) {
  const auto options = MakeOptions(flags);
  auto job = MakePlanOf(flags, invocation);
  absl::Status status = options.ok() ? job.status() : options.status();
  // What can't be planned is the input's fault, also a recipe that can't be read.
  if (!status.ok()) return Fail(absl::InvalidArgumentError(ErrorText(status)), flags.json);
  status = Print(flags, *job, *options);
  if (status.ok()) return kExitOk;
  PrintError(ErrorText(status));  // after an answer, so that --json stays one value
  return kExitUsage;
}

}  // namespace

Command AddPlan(CLI::App& root) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* app =
      root.add_subcommand("plan", "Show what a job would run where, without running it");
  AddJobFlags(app, &flags->job);
  const std::string group = "Plan";
  ParsedOption(app, "--device-memory", &flags->device_memory, plan::ParseMemorySize, "SIZE",
               "Memory of a device, as 80GiB (default: by the hosts' type=)")
      ->group(group);
  app->add_option("--constants", flags->constants,
                  "TOML file with rates for the estimates (docs/planning.md)")
      ->type_name("FILE")
      ->group(group);
  auto* compare = app->add_flag("--compare", flags->compare,
                                "All layouts that work on these hosts, the fastest that fit first");
  NumberOption(app, "--top", &flags->top, 1, 1'000'000, "Only the first N of them")
      ->needs(compare)
      ->group(group);
  auto* all = app->add_flag("--all-ranks", flags->all_ranks, "A line for each rank, however many");
  auto* rank = NumberOption(app, "--rank", &flags->rank, 0, 1U << 20,
                            "All of one rank: place, peers, memory, environment, command");
  auto* script = app->add_flag("--script", flags->script, "The same job as plain bash, on stdout");
  NumberOption(app, "--master-port", &flags->master_port, 1, 65535,
               "MASTER_PORT that --script and --rank show (a job gets a free one)")
      ->group(group);
  compare->group(group)->excludes(rank)->excludes(script)->excludes(all);
  all->group(group)->excludes(rank)->excludes(script);
  rank->group(group)->excludes(script);
  auto* json = JsonFlag(app, &flags->json);
  script->group(group)->excludes(json);
  app->footer(kFooter);
  return {app, [flags](const Invocation& invocation) { return Run(*flags, invocation); }, true};
}

}  // namespace muster::cli
