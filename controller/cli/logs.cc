// muster logs: what ranks wrote, during the job or after it.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "common/clock.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/flags.h"
#include "controller/cli/log_diff.h"
#include "controller/cli/log_json.h"
#include "controller/cli/log_lines.h"
#include "controller/cli/log_since.h"
#include "controller/cli/log_view.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/engine/transitions.h"

namespace muster::cli {
namespace {

struct LogsFlags {
  std::string job = "last";
  bool follow = false;
  std::vector<uint32_t> ranks;
  std::vector<uint32_t> tp, pp, cp, dp;
  std::vector<std::string> hosts;
  std::string stream;
  std::optional<uint64_t> tail;
  std::optional<int64_t> since_ns;
  std::string grep;
  std::string attempt;  // number, "all", or empty
  bool times = false;
  bool diff = false;
  bool raw = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(A line begins with its rank: `[ 3] ` from stdout, `[ 3]! ` from stderr. Bytes that are not text are
shown as \xNN, so the output is always valid UTF-8; a progress bar is shown in its newest state.
--raw gives the bytes as they are, and the files that `muster submit` names hold them too.

Examples:
  muster logs                       all ranks of the newest job
  muster logs -f 3 --rank 0,17      follow two ranks of job 3 until it ends
  muster logs train --stream err --tail 50
  muster logs 3 --rank 0 --stream out --raw > rank0.out
  muster logs 3 --json | jq -r 'select(.rank == 0).text'
  muster logs -f --pp 3 --tp 0 --grep 'loss|nan'     ranks by their place in the plan
  muster logs 3 --since 10m --times                  one clock for all nodes
  muster logs 3 --diff                               which ranks print other lines than most

--diff compares kinds of lines: numbers and the rank's own host name may differ (docs/logs.md).
Exit codes: 0 ok; 2 no such job, rank or host; 125 the controller can't be reached.
)";

absl::StatusOr<std::string> ParseStream(std::string_view text) {
  if (text == "out" || text == "stdout") return std::string("out");
  if (text == "err" || text == "stderr") return std::string("err");
  return absl::InvalidArgumentError(fmt::format("'{}' is not 'out' or 'err'", text));
}

absl::StatusOr<std::string> ParseAttempt(std::string_view text) {
  const auto number = ParseNumber(text, 0, UINT32_MAX);
  if (!number.ok() && text != "all") {
    return absl::InvalidArgumentError(fmt::format("'{}' is not a number from 0, or 'all'", text));
  }
  return std::string(text);
}

v1::LogsRequest MakeRequest(const LogsFlags& flags, const std::string& job) {
  v1::LogsRequest request;
  request.set_job(job);
  request.set_follow(flags.follow);
  request.mutable_ranks()->Add(flags.ranks.begin(), flags.ranks.end());
  for (const std::string& host : flags.hosts) request.add_hosts(host);
  if (flags.stream == "out") request.add_streams(v1::STREAM_STDOUT);
  if (flags.stream == "err") request.add_streams(v1::STREAM_STDERR);
  request.mutable_tp()->Add(flags.tp.begin(), flags.tp.end());
  request.mutable_pp()->Add(flags.pp.begin(), flags.pp.end());
  request.mutable_cp()->Add(flags.cp.begin(), flags.cp.end());
  request.mutable_dp()->Add(flags.dp.begin(), flags.dp.end());
  if (flags.attempt == "all") {
    request.set_all_attempts(true);
  } else if (!flags.attempt.empty()) {
    request.set_attempt(static_cast<uint32_t>(std::stoul(flags.attempt)));
  }
  if (flags.tail) request.set_tail_lines(*flags.tail);
  if (flags.since_ns) request.set_since_ns(*flags.since_ns);
  request.set_grep(flags.grep);
  request.set_times(flags.times || flags.json);
  return request;
}

// Takes the chunks in one of the four forms. Append and Finish on the reading thread, Tick on
// another.
class Printer {
 public:
  Printer(const LogsFlags& flags, uint32_t world)
      : flags_(flags),
        view_(
            world, Style::For(STDOUT_FILENO), [this](std::string_view text) { Write(text); },
            flags.times),
        json_([this](std::string_view text) { Write(text); }),
        diff_lines_([this](const LogLine& line) { diff_.Add(line); }) {}

  // False when nobody reads any more.
  bool Append(const v1::LogsResponse& chunk) {
    const std::lock_guard lock(mutex_);
    if (flags_.raw) {
      WriteRaw(chunk);
    } else if (flags_.diff) {
      diff_lines_.Append(chunk);
    } else if (flags_.json) {
      json_.Append(chunk);
    } else {
      view_.Append(chunk, LogView::Clock::now());
    }
    return readable_;
  }
  void Tick() {
    if (flags_.raw || flags_.json || flags_.diff) return;
    const std::lock_guard lock(mutex_);
    view_.Tick(LogView::Clock::now());
  }
  void Finish() {
    const std::lock_guard lock(mutex_);
    json_.Finish();
    view_.Finish();
    if (!flags_.diff) return;
    diff_lines_.Finish();
    Write(flags_.json ? diff_.Json() : diff_.Text(Style::For(STDOUT_FILENO)));
  }

 private:
  // A resumed connection sends again what is there.
  void WriteRaw(const v1::LogsResponse& chunk) {
    if (chunk.attempt() != raw_attempt_) raw_offset_ = 0;
    raw_attempt_ = chunk.attempt();
    const uint64_t end = chunk.offset() + chunk.data().size();
    const uint64_t known = raw_offset_ > chunk.offset() ? raw_offset_ - chunk.offset() : 0;
    if (known < chunk.data().size()) Write(std::string_view(chunk.data()).substr(known));
    raw_offset_ = std::max(raw_offset_, end);
  }
  void Write(std::string_view text) { readable_ = readable_ && WriteAll(STDOUT_FILENO, text); }

  const LogsFlags& flags_;
  std::mutex mutex_;
  bool readable_ = true;
  uint32_t raw_attempt_ = 0;
  uint64_t raw_offset_ = 0;
  LogView view_;
  LogJson json_;
  LogDiff diff_;
  LogLines diff_lines_;
};

// Shows half lines while the reader waits for more.
class Ticker {
 public:
  explicit Ticker(Printer& printer)
      : thread_([this, &printer] {
          absl::MutexLock lock(&mutex_);
          while (!mutex_.AwaitWithTimeout(absl::Condition(&done_), absl::Milliseconds(100))) {
            printer.Tick();
          }
        }) {}
  ~Ticker() {
    {
      absl::MutexLock lock(&mutex_);
      done_ = true;
    }
    thread_.join();
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  absl::Mutex mutex_;
  bool done_ = false;
  std::thread thread_;
};

absl::Status Print(Client& client, const LogsFlags& flags, const v1::Job& job) {
  Canceller canceller;
  Printer printer(flags, job.plan().world());
  v1::LogsRequest request = MakeRequest(flags, job.id());
  absl::Status status;
  {
    const Ticker ticker(printer);
    status = ReadStream<v1::LogsResponse>(
        client, canceller,
        [&](Client::Stub& stub, grpc::ClientContext* context) {
          return stub.Logs(context, request);
        },
        [&](const v1::LogsResponse& chunk) { return printer.Append(chunk); },
        [&](const absl::Status&) {
          // What was shown is skipped by its offset; a tail would now mean other lines.
          request.clear_tail_lines();
          PrintError("the controller went away; waiting for it to come back");
        });
  }
  printer.Finish();
  return status;
}

// Why a job whose ranks have never run has no lines, or "".
std::string WhyNothing(const v1::Job& job) {
  const bool ran = std::any_of(
      job.ranks().begin(), job.ranks().end(),
      [](const v1::RankView& rank) { return rank.status().state() >= v1::RANK_STATE_RUNNING; });
  if (ran || job.attempt() > 0) return "";
  if (job.state() == v1::JOB_STATE_QUEUED) {
    return fmt::format("job {} is queued; muster ps says what it waits for", job.id());
  }
  return engine::IsTerminal(job.state())
             ? fmt::format("job {0} wrote nothing, none of its ranks has run; muster why {0}",
                           job.id())
             : fmt::format("no rank of job {} runs yet", job.id());
}

int Run(const LogsFlags& flags) {
  if (flags.raw && (flags.ranks.size() != 1 || flags.stream.empty() || flags.json)) {
    PrintError("--raw shows one stream: give one --rank and a --stream, and no --json");
    return kExitUsage;
  }
  if (flags.diff && (flags.follow || flags.raw || flags.times)) {
    PrintError("--diff looks once at what is there: leave out -f, --raw and --times");
    return kExitUsage;
  }
  Client client(ConnectIfUsed(StateDir()));
  v1::GetJobRequest request;
  request.set_job(flags.job);
  const auto job =
      client.Call<v1::GetJobRequest, v1::GetJobResponse>(&Client::Stub::GetJob, request);
  if (job.ok()) {
    if (const std::string why = WhyNothing(job->job()); !why.empty()) PrintError(why);
  }
  const absl::Status status = job.ok() ? Print(client, flags, job->job()) : job.status();
  return status.ok() ? kExitOk : Fail(status, flags.json);
}

}  // namespace

Command AddLogs(CLI::App& root) {
  const auto flags = std::make_shared<LogsFlags>();
  CLI::App* app = root.add_subcommand("logs", "Show what the ranks of a job wrote");
  app->add_option("JOB", flags->job, "Number, name or 'last' (the default)")->type_name("JOB");
  app->add_flag("-f,--follow", flags->follow, "Go on until the job has ended");
  ParsedOption(app, "--rank", &flags->ranks, ParseNumberList, "RANKS",
               "Only these global ranks: 0,17 or 0-3");
  const auto coordinate = [app](const std::string& name, std::vector<uint32_t>* target) {
    ParsedOption(app, "--" + name, target, ParseNumberList, "LIST",
                 "Only ranks with this " + name + " coordinate in the plan");
  };
  coordinate("tp", &flags->tp);
  coordinate("pp", &flags->pp);
  coordinate("cp", &flags->cp);
  coordinate("dp", &flags->dp);
  ParsedOption(app, "--host", &flags->hosts, ParseWordList, "HOSTS", "Only ranks on these hosts");
  ParsedOption(app, "--stream", &flags->stream, ParseStream, "out|err",
               "Only stdout or only stderr");
  ParsedOption(
      app, "--tail", &flags->tail,
      [](std::string_view text) { return ParseNumber(text, 0, 1'000'000'000); }, "N",
      "Begin with the last N lines of each rank");
  ParsedOption(
      app, "--since", &flags->since_ns,
      [](std::string_view text) { return ParseSince(text, Clock::Real().RealtimeNs()); }, "TIME",
      "Lines written since then: 10m, 1d, 14:03, '2026-11-29 14:03:20'");
  app->add_option("--grep", flags->grep, "Lines that this Perl regular expression finds")
      ->type_name("RE");
  ParsedOption(app, "--attempt", &flags->attempt, ParseAttempt, "K|all",
               "An attempt, from 0, or all (default: the newest; -f: later ones too)");
  app->add_flag("--times", flags->times, "When each line was written, on the controller's clock");
  app->add_flag("--diff", flags->diff, "Group ranks that print the same, and show the odd ones");
  app->add_flag("--raw", flags->raw, "The bytes as written, of one rank and stream");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
