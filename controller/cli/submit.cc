// muster submit: hand a job to the controller and follow it.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "common/version.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/follow.h"
#include "controller/cli/job_json.h"
#include "controller/cli/job_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/cli/stage_job.h"
#include "controller/cli/stage_run.h"
#include "controller/cli/summary.h"
#include "controller/cli/trainer_check.h"
#include "controller/plan/planner.h"
#include "controller/plan/render.h"

namespace muster::cli {
namespace {

struct SubmitFlags {
  JobFlags job;
  std::string stage;
  bool detach = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(A controller is started in the background when none runs. The plan, phases and all ranks' lines are
shown until the job ends. Ctrl-C asks what to do; without a terminal SIGINT and SIGTERM stop the
job. Closing the terminal leaves it running. With --json the job is one JSON object on stdout at the
end, and everything else goes to stderr.

Examples:
  muster submit recipes/tiny_cpu.toml --hostfile hosts
  muster submit --hostfile hosts --tp 1 --pp 2 -- python train.py --pipeline {pp}
  muster submit recipes/tiny_cpu.toml --host 127.0.0.2:2,127.0.0.3:2 --flag train-iters=50 --detach
  muster submit --hostfile hosts --env NCCL_DEBUG=INFO --env WANDB_API_KEY -- ./main.sh

Exit codes: 0 all ranks gave 0; 2 usage or invalid input; 120 preflight failed; 121 launch failed;
  122 node lost; 124 processes are left; 125 internal; 130 stopped by the user; otherwise the first
  failing rank's own code (128 + signal for a signal).
)";

// Ends the command with an error that came before there was a job.
int Refuse(const SubmitFlags& flags, const absl::Status& status) {
  const int code = ExitCodeFor(status);
  PrintError(ErrorText(status));
  if (flags.json) {
    v1::Job job;
    job.set_state(v1::JOB_STATE_FAILED);
    v1::Outcome& outcome = *job.mutable_outcome();
    outcome.set_cause(code == kExitUsage ? v1::CAUSE_INVALID : v1::CAUSE_INTERNAL);
    outcome.set_code(code);
    outcome.set_message(ErrorText(status));
    PrintLine(JobJson(job));
  }
  return code;
}

// Tags need a width before the number of ranks is known: the controller may have to ask the
// machines for their slots.
uint32_t LikelyWorld(const v1::SubmitResponse& submitted, const v1::JobSpec& spec) {
  constexpr uint32_t kLikelySlots = 8;
  if (submitted.has_plan()) return submitted.plan().world();
  return static_cast<uint32_t>(spec.inventory().hosts_size()) * kLikelySlots;
}

void PrintSubmitted(const v1::SubmitResponse& submitted, int fd, const Style& style) {
  if (submitted.has_plan())
    WriteAll(fd, plan::RenderText(submitted.plan(), plan::RankRows::kBrief) + "\n");
  WriteAll(fd, fmt::format("{}job {}, output in {}\n", style.Dim("muster: "),
                           style.Bold(submitted.job_id()), submitted.output_dir()));
}

int Detached(Client& client, const SubmitFlags& flags, const std::string& id, int fd) {
  WriteAll(
      fd,
      fmt::format(
          "muster: job {0} goes on; muster logs -f {0} follows it, muster stop {0} ends it\n", id));
  if (!flags.json) return kExitOk;
  v1::GetJobRequest request;
  request.set_job(id);
  const auto job =
      client.Call<v1::GetJobRequest, v1::GetJobResponse>(&Client::Stub::GetJob, request);
  if (!job.ok()) return Refuse(flags, job.status());
  PrintLine(JobJson(job->job()));
  return kExitOk;
}

int Ended(const SubmitFlags& flags, const v1::Job& job) {
  const int code = ExitCodeFor(job);
  const int fd = flags.json || code != kExitOk ? STDERR_FILENO : STDOUT_FILENO;
  const Style style = Style::For(fd);
  std::string text = style.Dim("muster: ");
  for (const std::string& line : WhyLines(why::ExplainJob(job), style)) text += line + "\n";
  WriteAll(fd, text);
  if (flags.json) PrintLine(JobJson(job));
  return code;
}

// A controller in the background outlives an upgrade of the programs.
void WarnOfOtherVersion(Client& client) {
  const auto info = client.Call<v1::InfoRequest, v1::InfoResponse>(&Client::Stub::Info, {});
  if (!info.ok() || info->version() == kVersion) return;
  PrintError(fmt::format(
      "warning: the controller that runs is version {}, this program is {}; `muster serve --stop`, "
      "and the next submit starts a new one",
      info->version(), kVersion));
}

// Puts the tree on the job's hosts, so that the job can name it. 0, or the exit code.
int Stage(Client& client, const SubmitFlags& flags, const v1::Plan* plan, int fd,
          v1::JobSpec& spec) {
  const v1::StageRequest request = StageRequestFor(spec, plan);
  const auto end = RunStage(client, request, fd, Style::For(fd));
  if (!end.ok()) return Refuse(flags, end.status());
  WriteAll(fd, StageText(request, *end, Style::For(fd)));
  spec.mutable_staged()->set_content_id(end->content_id());
  const absl::Status status = StagedEverywhere(*end);
  if (status.ok()) return kExitOk;
  PrintError(ErrorText(status));
  if (flags.json) {
    v1::Job job;
    job.set_state(v1::JOB_STATE_FAILED);
    job.mutable_outcome()->set_cause(v1::CAUSE_LAUNCH_FAILED);
    job.mutable_outcome()->set_code(kExitLaunch);
    job.mutable_outcome()->set_message(ErrorText(status));
    PrintLine(JobJson(job));
  }
  return kExitLaunch;
}

int Run(const SubmitFlags& flags, const Invocation& invocation) {
  auto spec = MakeJobSpec(flags.job, invocation);
  if (spec.ok() && !flags.stage.empty()) {
    if (const absl::Status used = UseStaged(flags.stage, *spec); !used.ok()) spec = used;
  }
  if (!spec.ok()) return Refuse(flags, absl::InvalidArgumentError(ErrorText(spec.status())));
  // What can't be planned is said here and now, without a controller. Unknown slots are for the
  // controller to find.
  const auto plan = plan::MakePlan(*spec);
  if (absl::IsInvalidArgument(plan.status())) return Refuse(flags, plan.status());
  if (plan.ok()) {
    if (const absl::Status checked = CheckTrainerFlags(*spec, *plan); !checked.ok()) {
      return Refuse(flags, checked);
    }
  }

  SignalWait signals({SIGINT, SIGTERM, SIGHUP});  // before gRPC makes threads
  Client client(ConnectOrStart(StateDir()));
  if (spec->has_staged()) {
    const int fd = flags.json ? STDERR_FILENO : STDOUT_FILENO;
    const int code = Stage(client, flags, plan.ok() ? &*plan : nullptr, fd, *spec);
    if (code != kExitOk) return code;
  }
  v1::SubmitRequest request;
  *request.mutable_spec() = *std::move(spec);
  const auto submitted =
      client.Call<v1::SubmitRequest, v1::SubmitResponse>(&Client::Stub::Submit, request);
  if (!submitted.ok()) return Refuse(flags, submitted.status());
  WarnOfOtherVersion(client);

  FollowOptions options;
  options.fd = flags.json ? STDERR_FILENO : STDOUT_FILENO;
  options.style = Style::For(options.fd);
  options.ask = isatty(STDIN_FILENO) == 1 && isatty(options.fd) == 1;
  options.live = isatty(options.fd) == 1;
  PrintSubmitted(*submitted, options.fd, options.style);
  if (flags.detach) return Detached(client, flags, submitted->job_id(), options.fd);
  const auto followed = Follow(client, signals, submitted->job_id(),
                               LikelyWorld(*submitted, request.spec()), options);
  if (!followed.ok()) {
    PrintError(ErrorText(followed.status()) + "\nthe job may still run: muster ps");
    return kExitInternal;
  }
  if (followed->end == Followed::End::kDetached) {
    return Detached(client, flags, submitted->job_id(), options.fd);
  }
  return Ended(flags, followed->job);
}

}  // namespace

Command AddSubmit(CLI::App& root) {
  const auto flags = std::make_shared<SubmitFlags>();
  CLI::App* app =
      root.add_subcommand("submit", "Run a job on the machines of a hostfile and follow it");
  AddJobFlags(app, &flags->job);
  app->add_option("--stage", flags->stage,
                  "Put this folder on all hosts first, run from there (docs/staging.md)")
      ->type_name("DIR");
  app->add_flag("--detach", flags->detach, "Return at once; the job goes on");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation& invocation) { return Run(*flags, invocation); }, true};
}

}  // namespace muster::cli
