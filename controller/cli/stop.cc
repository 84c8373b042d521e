// muster stop: ends all ranks of a job on all nodes and prints the proof.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>
#include <memory>
#include <optional>

#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/follow.h"
#include "controller/cli/job_json.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/cli/summary.h"
#include "controller/engine/transitions.h"
#include "controller/plan/recipe.h"

namespace muster::cli {
namespace {

struct StopFlags {
  std::string job;
  bool all = false;
  bool save = false;
  std::optional<absl::Duration> grace;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Ranks get SIGCONT and SIGTERM, then SIGKILL after the grace (30 s unless the job says otherwise).
The command returns when every node has looked for what is left, with one line a node. A second
stop with a shorter grace shortens the first.

With --save the ranks are asked to save and to end by themselves (SIGTERM to the ranks alone, or the
recipe's save_signal), what they write meanwhile is shown, and only what has not ended after the
grace (then 10 minutes) is killed. muster-train does so with --exit-signal-handler.

Examples:
  muster stop last
  muster stop last --save
  muster stop 3 --grace 5s
  muster stop --all --json

Exit codes: 0 all of it has ended (with --save: and all ranks have saved, though they exit with 75);
  2 no such job; 130 with --save: not all ranks saved; 124 processes are left (they are named), or a
  node could not look; 125 the controller can't be reached.
)";

absl::StatusOr<v1::Job> GetJob(Client& client, const std::string& name) {
  v1::GetJobRequest request;
  request.set_job(name);
  auto response =
      client.Call<v1::GetJobRequest, v1::GetJobResponse>(&Client::Stub::GetJob, request);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_job());
}

// The job once it has ended.
absl::StatusOr<v1::Job> WaitForEnd(Client& client, const std::string& id) {
  Canceller canceller;
  std::optional<v1::Job> job;
  uint64_t seen = 0;
  const absl::Status status = ReadStream<v1::WatchResponse>(
      client, canceller,
      [&](Client::Stub& stub, grpc::ClientContext* context) {
        v1::WatchRequest request;
        request.set_job(id);
        request.set_after(seen);
        return stub.Watch(context, request);
      },
      [&](v1::WatchResponse response) {
        if (response.has_event()) seen = response.event().sequence();
        if (response.has_job()) job = std::move(*response.mutable_job());
        return true;
      },
      [](const absl::Status&) {
        PrintError("the controller went away; waiting for it to come back");
      });
  if (!status.ok()) return status;
  if (job) return *std::move(job);
  return GetJob(client, id);
}

// The job once it has ended; what its ranks write meanwhile is shown. Ctrl-C: they need not save.
absl::StatusOr<v1::Job> WatchSave(Client& client, SignalWait& signals, const std::string& id,
                                  const StopFlags& flags) {
  auto job = GetJob(client, id);
  if (!job.ok() || engine::IsTerminal(job->state())) return job;
  FollowOptions options;
  options.fd = flags.json ? STDERR_FILENO : STDOUT_FILENO;
  options.style = Style::For(options.fd);
  options.only_new = true;
  const auto followed = Follow(client, signals, id, job->plan().world(), options);
  if (!followed.ok()) return followed.status();
  if (followed->end == Followed::End::kDetached)
    return absl::CancelledError("left; the job goes on stopping");
  return followed->job;
}

// Asks for the stop and waits; jobs that had ended before are given back as they are.
absl::StatusOr<std::vector<v1::Job>> StopJobs(Client& client, SignalWait* signals,
                                              const StopFlags& flags) {
  std::vector<v1::Job> ended;
  if (!flags.all) {
    auto job = GetJob(client, flags.job);
    if (!job.ok()) return job.status();
    if (engine::IsTerminal(job->state())) {
      PrintError(
          fmt::format("job {} had ended already: {}", JobTitle(*job), StateName(job->state())));
      ended.push_back(*std::move(job));
      return ended;
    }
  }
  v1::StopRequest request;
  request.set_job(flags.job);
  request.set_all(flags.all);
  request.set_save(flags.save);
  if (flags.grace) {
    absl::Duration rest = *flags.grace;
    request.mutable_grace()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    request.mutable_grace()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  }
  const auto response =
      client.Call<v1::StopRequest, v1::StopResponse>(&Client::Stub::Stop, request);
  if (!response.ok()) return response.status();
  for (const std::string& id : response->job_ids()) {
    auto job = signals == nullptr ? WaitForEnd(client, id) : WatchSave(client, *signals, id, flags);
    if (!job.ok()) return job.status();
    ended.push_back(*std::move(job));
  }
  return ended;
}

int Report(const std::vector<v1::Job>& jobs, const StopFlags& flags) {
  const Style style = Style::For(1);
  bool clean = true;
  v1::ListJobsResponse list;
  for (const v1::Job& job : jobs) {
    clean = clean && AllClean(job);
    *list.add_jobs() = job;
    if (flags.json) continue;
    if (jobs.size() > 1) PrintLine(style.Bold("job " + JobTitle(job)));
    for (const std::string& line : NodeLines(job, style)) PrintLine(line);
    if (job.ends().empty()) PrintLine("job " + JobTitle(job) + ": no rank had been started");
  }
  if (flags.json) PrintLine(JobListJson(list));
  if (!clean) return kExitLeftovers;
  // Whoever asked for a save wants to know of ranks that have not.
  for (const v1::Job& job : jobs) {
    if (flags.save && job.outcome().cause() == v1::CAUSE_STOPPED_BY_USER &&
        job.outcome().code() != kExitOk) {
      PrintError("job " + JobTitle(job) + ": " + job.outcome().message());
      return kExitStopped;
    }
  }
  return kExitOk;
}

int Run(const StopFlags& flags) {
  if (flags.job.empty() != flags.all) {
    PrintError("say what to stop: one JOB, or --all");
    return kExitUsage;
  }
  std::optional<SignalWait> signals;  // before gRPC makes threads
  if (flags.save) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP});
  Client client(ConnectIfUsed(StateDir()));
  auto jobs = StopJobs(client, signals ? &*signals : nullptr, flags);
  if (flags.all && (absl::IsNotFound(jobs.status()) || (jobs.ok() && jobs->empty()))) {
    PrintError("no active job");
    jobs = std::vector<v1::Job>();
  }
  if (!jobs.ok()) return Fail(jobs.status(), flags.json);
  return Report(*jobs, flags);
}

}  // namespace

Command AddStop(CLI::App& root) {
  const auto flags = std::make_shared<StopFlags>();
  CLI::App* app =
      root.add_subcommand("stop", "Stop a job on all its nodes and prove that nothing is left");
  app->add_option("JOB", flags->job, "Number, name or 'last'")->type_name("JOB");
  app->add_flag("--all", flags->all, "All active jobs");
  app->add_flag("--save", flags->save, "Let the ranks save first and end by themselves");
  ParsedOption(app, "--grace", &flags->grace, plan::ParseGrace, "TIME",
               "Between SIGTERM and SIGKILL: 5s, 500ms, 2m");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
