// muster ps: the jobs.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "common/clock.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_json.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/cli/text.h"
#include "controller/engine/text.h"
#include "controller/engine/transitions.h"
#include "controller/why/render.h"

namespace muster::cli {
namespace {

struct PsFlags {
  std::string job;
  bool all = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Examples:
  muster ps             active jobs and those that ended within the last day
  muster ps -a --json   all jobs, for programs
  muster ps last        one job with its ranks

Exit codes: 0 ok; 2 no such job; 125 the controller can't be reached.
)";

std::string StateCell(const v1::Job& job, const Style& style) {
  const std::string state = StateName(job.state());
  switch (job.state()) {
    case v1::JOB_STATE_RUNNING:
    case v1::JOB_STATE_SUCCEEDED:
      return style.Green(state);
    case v1::JOB_STATE_FAILED:
      return style.Red(state);
    default:
      return style.Yellow(state);
  }
}

// What fits a row: the first line, without the way to mend it. `muster why` has all of it.
std::string ShortCause(const v1::Job& job) {
  constexpr size_t kMost = 100;
  const std::string& all = job.outcome().message();
  const std::string line = all.substr(0, all.find('\n'));
  return engine::Shorten(line.substr(0, line.find("; fix: ")), kMost);
}

// The oldest other job that has a host of this one, as the queue sees it: a host has one job.
std::string WaitsFor(const v1::Job& job, const v1::ListJobsResponse& all) {
  for (auto other = all.jobs().rbegin(); other != all.jobs().rend(); ++other) {
    if (other->id() == job.id()) break;
    if (engine::IsTerminal(other->state())) continue;
    for (const v1::NodePlan& mine : job.plan().nodes()) {
      for (const v1::NodePlan& node : other->plan().nodes()) {
        if (node.host().host() != mine.host().host()) continue;
        return fmt::format("waits for {} (job {})", mine.host().host(), other->id());
      }
    }
  }
  return "";
}

// `all`, newest first: to say what a queued one of `jobs` waits for.
std::string JobTable(const v1::ListJobsResponse& jobs, const v1::ListJobsResponse& all,
                     int64_t now_ns, const Style& style) {
  Table table({"JOB", "NAME", "STATE", "RANKS", "NODES", "SUBMITTED", "TIME", "EXIT", "WHY"});
  table.AlignRight({0, 3, 4, 6, 7});
  for (const v1::Job& job : jobs.jobs()) {
    const bool ended = engine::IsTerminal(job.state());
    const int64_t until = ended ? job.ended_ns() : now_ns;
    const int64_t since = job.started_ns() != 0 ? job.started_ns() : job.submitted_ns();
    const std::string& name = job.plan().name().empty() ? job.spec().name() : job.plan().name();
    const std::string why = job.state() == v1::JOB_STATE_FAILED   ? ShortCause(job)
                            : job.state() == v1::JOB_STATE_QUEUED ? WaitsFor(job, all)
                                                                  : "";
    table.Add({job.id(), EscapeForDisplay(name), StateCell(job, style),
               job.plan().world() == 0 ? "-" : std::to_string(job.plan().world()),
               job.plan().nodes().empty() ? "-" : std::to_string(job.plan().nodes_size()),
               FormatTime(job.submitted_ns()), FormatDuration(until - since),
               ended ? std::to_string(ExitCodeFor(job)) : "-", EscapeForDisplay(why)});
  }
  return table.Render(style);
}

std::string RankTable(const v1::Job& job, const Style& style) {
  Table table({"RANK", "HOST", "LOCAL", "PID", "STATE", "EXIT", "LOST BYTES"});
  table.AlignRight({0, 2, 3});
  for (const v1::RankView& rank : job.ranks()) {
    const v1::RankStatus& status = rank.status();
    std::string exit = status.has_exit() ? std::to_string(status.exit().code()) : "-";
    if (status.exit().signal() != 0) exit += " (" + SignalName(status.exit().signal()) + ")";
    table.Add({std::to_string(rank.plan().rank()), rank.host(),
               std::to_string(rank.plan().local_rank()),
               status.pid() == 0 ? "-" : std::to_string(status.pid()),
               RankStateName(status.state()) + (status.stopped() ? ", stopped (T)" : "") +
                   (status.log_waits() ? ", waits in its output (log quota)" : ""),
               exit,
               status.lost_bytes() == 0 ? "-"
                                        : fmt::format("{} ({})", status.lost_bytes(),
                                                      EscapeForDisplay(status.lost_reason()))});
  }
  return table.Render(style);
}

int ShowJob(Client& client, const PsFlags& flags) {
  v1::GetJobRequest request;
  request.set_job(flags.job);
  const auto response =
      client.Call<v1::GetJobRequest, v1::GetJobResponse>(&Client::Stub::GetJob, request);
  if (!response.ok()) return Fail(response.status(), flags.json);
  const v1::Job& job = response->job();
  if (flags.json) {
    PrintLine(JobJson(job));
    return kExitOk;
  }
  const Style style = Style::For(1);
  v1::ListJobsResponse one;
  *one.add_jobs() = job;
  auto all = one;
  if (job.state() == v1::JOB_STATE_QUEUED) {
    auto listed =
        client.Call<v1::ListJobsRequest, v1::ListJobsResponse>(&Client::Stub::ListJobs, {});
    if (listed.ok()) all = *std::move(listed);
  }
  WriteAll(1, JobTable(one, all, Clock::Real().RealtimeNs(), style));
  PrintLine("output in " + job.output_dir());
  const std::vector<uint32_t> unfinished = why::UnfinishedLogs(job);
  if (!unfinished.empty()) PrintLine(style.Red(why::UnfinishedText(unfinished)));
  if (job.ranks_size() > 0) WriteAll(1, "\n" + RankTable(job, style));
  return kExitOk;
}

int ListJobs(Client& client, const PsFlags& flags) {
  v1::ListJobsRequest request;
  request.set_all(flags.all);
  auto jobs =
      client.Call<v1::ListJobsRequest, v1::ListJobsResponse>(&Client::Stub::ListJobs, request);
  if (absl::IsNotFound(jobs.status())) jobs = v1::ListJobsResponse();
  if (!jobs.ok()) return Fail(jobs.status(), flags.json);
  if (flags.json) {
    PrintLine(JobListJson(*jobs));
  } else if (jobs->jobs().empty()) {
    PrintError(flags.all ? "no jobs yet"
                         : "no jobs within the last day; `muster ps -a` shows older ones");
  } else {
    WriteAll(1, JobTable(*jobs, *jobs, Clock::Real().RealtimeNs(), Style::For(1)));
  }
  return kExitOk;
}

int Run(const PsFlags& flags) {
  Client client(ConnectIfUsed(StateDir()));
  return flags.job.empty() ? ListJobs(client, flags) : ShowJob(client, flags);
}

}  // namespace

Command AddPs(CLI::App& root) {
  const auto flags = std::make_shared<PsFlags>();
  CLI::App* app = root.add_subcommand("ps", "List jobs, newest first, or show one with its ranks");
  app->add_option("JOB", flags->job, "Number, name or 'last'")->type_name("JOB");
  app->add_flag("-a,--all", flags->all, "Also jobs that ended more than a day ago");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
