// muster plan: what would run where. Needs no controller.
#include <memory>

#include "controller/cli/command.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/trainer_check.h"
#include "controller/plan/planner.h"
#include "controller/plan/render.h"

namespace muster::cli {
namespace {

struct PlanFlags {
  JobFlags job;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Prints the sizes with their arithmetic, the hosts, which rank runs where with its coordinates, and
warnings. Hosts need slots= (or gpus=) in the hostfile here, since no machine is asked.

Examples:
  muster plan recipes/tiny_cpu.toml --hostfile hosts
  muster plan --host node[01-16]:8 --tp 2 --pp 4 -- python train.py
  muster plan recipes/llama3_8b_fp8.toml --hostfile hosts --json | jq .dp

Exit codes: 0 ok; 2 the job can't be planned (the message says why and what would do).
)";

int Run(const PlanFlags& flags, const Invocation& invocation) {
  const auto spec = MakeJobSpec(flags.job, invocation);
  auto plan = spec.ok() ? plan::MakePlan(*spec) : absl::StatusOr<v1::Plan>(spec.status());
  if (plan.ok()) {
    if (absl::Status checked = CheckTrainerFlags(*spec, *plan); !checked.ok()) plan = checked;
  }
  // What can't be planned is the input's fault, also a recipe that can't be read.
  if (!plan.ok()) return Fail(absl::InvalidArgumentError(ErrorText(plan.status())), flags.json);
  WriteAll(1, flags.json ? plan::ToJson(*plan) : plan::RenderText(*plan));
  return kExitOk;
}

}  // namespace

Command AddPlan(CLI::App& root) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* app =
      root.add_subcommand("plan", "Show what a job would run where, without running it");
  AddJobFlags(app, &flags->job);
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation& invocation) { return Run(*flags, invocation); }, true};
}

}  // namespace muster::cli
