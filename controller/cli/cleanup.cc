// muster cleanup: finds and ends what dead jobs have left on the machines.
#include <unistd.h>

#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "common/status.h"
#include "controller/cli/cleanup_view.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/machine_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"

namespace muster::cli {
namespace {

struct CleanupFlags {
  MachineFlags machines;
  std::string transport;
  bool dry_run = false;
  bool any_controller = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Every process of a job bears a mark in its environment, which its children inherit. A process is a
leftover if its mark names an attempt that has ended, that its host does not run, or whose folder on
the host is gone. Nothing is ever judged by its command line, and processes of jobs that run are
left alone, also those of other controllers and daemons. Leftovers get SIGTERM, and SIGKILL 2 s
later.

Without --hostfile and --host: all hosts of all jobs that the controller remembers. A host that it
remembers is reached as it was then.

Examples:
  muster cleanup
  muster cleanup --dry-run              only look
  muster cleanup --host node7

Exit codes: 0 nothing is left; 2 usage or invalid input; 124 something is left, or a host could not
  look; 125 internal.
)";

// Hosts that are reached in one way.
using Sweeps = std::map<std::string, v1::JobSpec>;

void Add(const v1::Host& host, const std::string& transport, Sweeps* sweeps) {
  v1::JobSpec& spec = (*sweeps)[transport];
  spec.set_default_transport(transport);
  v1::Host& added = *spec.mutable_inventory()->add_hosts();
  added = host;
  added.set_spare(false);
}

// The hosts of the command line, else those of the remembered jobs.
absl::StatusOr<Sweeps> Hosts(Client& client, const CleanupFlags& flags) {
  v1::ListJobsRequest request;
  request.set_all(true);
  MUSTER_ASSIGN_OR_RETURN(const auto jobs, (client.Call<v1::ListJobsRequest, v1::ListJobsResponse>(
                                               &Client::Stub::ListJobs, request)));
  std::map<std::string, std::pair<v1::Host, std::string>> known;  // newest first
  for (const v1::Job& job : jobs.jobs()) {
    for (const v1::Host& host : job.spec().inventory().hosts()) {
      known.emplace(host.host(), std::make_pair(host, job.spec().default_transport()));
    }
  }
  Sweeps sweeps;
  if (flags.machines.hostfile.empty() && flags.machines.host.empty()) {
    for (const auto& [name, way] : known) Add(way.first, way.second, &sweeps);
    if (!sweeps.empty()) return sweeps;
    return absl::InvalidArgumentError(
        "no job is remembered, so no host is known: give --hostfile or --host");
  }
  MUSTER_ASSIGN_OR_RETURN(const v1::Inventory inventory, ReadInventory(flags.machines));
  for (const v1::Host& host : inventory.hosts()) {
    const auto way = known.find(host.host());
    const bool remembered =
        way != known.end() && flags.machines.hostfile.empty() && flags.transport.empty();
    if (remembered) {
      Add(way->second.first, way->second.second, &sweeps);
    } else {
      Add(host, flags.transport, &sweeps);
    }
  }
  return sweeps;
}

absl::StatusOr<v1::CheckResponse> Sweep(Client& client, const CleanupFlags& flags,
                                        v1::JobSpec spec) {
  constexpr std::chrono::seconds kLimit(90);  // of the controller's own time-outs, and some more
  MUSTER_ASSIGN_OR_RETURN(const auto stub, client.Get());
  spec.mutable_inventory()->set_source("--host");
  spec.set_working_dir("/");
  spec.set_submitter_uid(getuid());
  spec.set_submitter_gid(getgid());
  v1::CheckRequest request;
  *request.mutable_spec() = std::move(spec);
  request.mutable_leftovers()->set_end(!flags.dry_run);
  request.mutable_leftovers()->set_any_controller(flags.any_controller);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kLimit);
  v1::CheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) return FromGrpc(status);
  return response;
}

int Run(const CleanupFlags& flags) {
  Client client(ConnectOrStart(StateDir()));
  const auto sweeps = Hosts(client, flags);
  if (!sweeps.ok()) return Fail(sweeps.status(), flags.json);
  v1::CheckResponse all;
  for (const auto& [transport, spec] : *sweeps) {
    const auto response = Sweep(client, flags, spec);
    if (!response.ok()) return Fail(response.status(), flags.json);
    all.MergeFrom(*response);
  }
  if (flags.json) {
    PrintLine(SweepJson(all));
  } else {
    for (const std::string& line : SweepLines(all, Style::For(1))) PrintLine(line);
  }
  return NothingLeft(all) ? kExitOk : kExitLeftovers;
}

}  // namespace

Command AddCleanup(CLI::App& root) {
  const auto flags = std::make_shared<CleanupFlags>();
  CLI::App* app =
      root.add_subcommand("cleanup", "Find and end what dead jobs have left on the machines");
  AddMachineFlags(app, &flags->machines);
  app->add_option("--transport", flags->transport,
                  "How hosts are reached that no job remembers (docs/transports.md)")
      ->type_name("local|direct|openssh|command");
  app->add_flag("--dry-run", flags->dry_run, "Only look, end nothing");
  app->add_flag("--any-controller", flags->any_controller,
                "Also end what the hosts run for other controllers of this user");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
