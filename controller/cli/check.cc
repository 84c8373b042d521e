// muster check: would a job run on these machines, and which one is to be mended how?
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <optional>

#include "common/status.h"
#include "controller/cli/check_view.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/deep_check.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"

namespace muster::cli {
namespace {

struct CheckFlags {
  JobFlags job;
  bool verbose = false;
  bool deep = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Asks all hosts at the same time, once: devices and who holds them, network between all hosts on
their data addresses, ports, program, Python and PyTorch, files, disks, limits, clocks. Compares the
answers and names what differs, on which host, and the command that mends it. Nothing is started,
and running jobs are not disturbed. `muster submit` does the same before each start. All checks:
docs/preflight.md.

Examples:
  muster check --hostfile hosts                         the machines alone
  muster check recipes/tiny_cpu.toml --hostfile hosts   the machines for this job
  muster check --hostfile hosts -- python train.py --data /data/x.bin
  muster check --hostfile hosts --port-range 29500-29600 --skip clock --verbose
  muster check --hostfile hosts --deep                  also measures the ways between them

Exit codes: 0 no errors (there may be warnings); 2 usage or invalid input; 120 an error; 125
internal. With --deep also those of muster submit: 65 wrong data, 71 a rank that can't be reached.
)";

// Without a recipe and a command: the hosts as such.
absl::StatusOr<v1::JobSpec> MakeSpec(const JobFlags& flags, const Invocation& invocation) {
  if (!flags.recipe.empty() || invocation.has_dashes) return MakeJobSpec(flags, invocation);
  Invocation any;
  any.has_dashes = true;
  any.command = {"true"};
  MUSTER_ASSIGN_OR_RETURN(v1::JobSpec spec, MakeJobSpec(flags, any));
  spec.clear_command();
  return spec;
}

absl::StatusOr<v1::CheckResponse> Ask(Client& client, const v1::JobSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(const auto stub, client.Get());
  // Twice the time-out of the check, and something for the controller itself.
  const std::chrono::seconds limit(
      spec.has_check_timeout() ? 2 * (spec.check_timeout().seconds() + 1) + 30 : 90);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  v1::CheckRequest request;
  *request.mutable_spec() = spec;
  v1::CheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

// The rest of `muster check --deep`, once the machines have passed the other checks.
int RunDeep(Client& client, SignalWait& signals, const v1::JobSpec& spec,
            const v1::CheckResponse& checked, bool json) {
  if (!json) PrintLine("\nmuster-commtest on these hosts:");
  const auto deep = RunDeepCheck(client, signals, DeepSpec(spec, json));
  if (!deep.ok()) return Fail(deep.status(), json);
  if (json) {
    PrintLine(DeepCheckJson(checked, *deep));
  } else {
    WriteAll(1, deep->report);
  }
  const int code = ExitCodeFor(deep->job);
  if (code != kExitOk) PrintError("muster-commtest: " + deep->job.outcome().message());
  return code;
}

int Run(const CheckFlags& flags, const Invocation& invocation) {
  const auto spec = MakeSpec(flags.job, invocation);
  if (!spec.ok()) return Fail(absl::InvalidArgumentError(ErrorText(spec.status())), flags.json);
  std::optional<SignalWait> signals;  // before gRPC makes threads
  if (flags.deep) signals.emplace(std::initializer_list<int>{SIGINT, SIGTERM, SIGHUP});
  Client client(ConnectOrStart(StateDir()));
  const auto response = Ask(client, *spec);
  if (!response.ok()) return Fail(response.status(), flags.json);
  const int code = CheckExitCode(*response);
  const bool goes_on = flags.deep && code == kExitOk;
  if (!flags.json) {
    const Style style = Style::For(1);
    WriteAll(1, CheckText(*response, style));
    if (flags.verbose) WriteAll(1, "\n" + CheckTable(*response, style));
  } else if (!goes_on) {
    PrintLine(CheckJson(*response));
  }
  return goes_on ? RunDeep(client, *signals, *spec, *response, flags.json) : code;
}

}  // namespace

Command AddCheck(CLI::App& root) {
  const auto flags = std::make_shared<CheckFlags>();
  CLI::App* app = root.add_subcommand(
      "check", "Whether a job would run on the machines, and what to mend where");
  AddJobFlags(app, &flags->job);
  app->add_flag("--verbose", flags->verbose, "Also a table of what each host has");
  app->add_flag("--deep", flags->deep,
                "Then measure collectives and all pairs of hosts (docs/commtest.md)");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation& invocation) { return Run(*flags, invocation); }, true};
}

}  // namespace muster::cli
