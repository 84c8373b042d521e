// muster stage: put a tree of files on the machines of a hostfile.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "common/status.h"
#include "common/utf8.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_options.h"
#include "controller/cli/machine_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/stage_run.h"
#include "controller/nodes/transport.h"

namespace muster::cli {
namespace {

constexpr uint32_t kDefaultKeep = 4;

struct StageFlags {
  std::vector<std::string> paths;
  MachineFlags machines;
  std::string transport;
  std::string to;
  std::optional<uint32_t> keep;
  std::optional<v1::PortRange> port_range;
  bool prune = false;
  bool verify = false;
  bool dry_run = false;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Puts the content of a folder, or several files and folders, below the state folder of every host,
as a version named by its content. Hosts pass pieces on to each other while they receive, encrypted;
the controller feeds two of them. What a host has already, from this or another version, is not
sent; a transfer that broke goes on where it was. A version becomes visible when it is whole and
verified, and never changes then. .musterignore in the folder says what stays behind
(docs/staging.md).

Examples:
  muster stage . --hostfile hosts
  muster stage bundle --hostfile hosts --to /opt/muster-run   a link to the newest version
  muster stage . --hostfile hosts --verify                    read all of it again, and mend it
  muster stage . --hostfile hosts --dry-run                   what is missing where
  muster stage --prune --hostfile hosts                       remove what nobody uses
  muster submit --stage . --hostfile hosts -- python train.py

Exit codes: 0 all hosts have it; 2 usage or invalid input; 120 --dry-run found something missing or
  damaged; 121 a host could not be staged; 125 internal.
)";

absl::StatusOr<std::string> CheckedTransport(std::string_view text) {
  MUSTER_RETURN_IF_ERROR(nodes::ParseTransports(text).status());
  return std::string(text);
}

// A link has no slash at its end, where completion puts one.
std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

absl::StatusOr<v1::StageRequest> MakeRequest(const StageFlags& flags) {
  v1::StageRequest request;
  if (flags.paths.empty() && !flags.prune)
    return absl::InvalidArgumentError("stage what? Give a folder, or files and folders");
  if (flags.paths.empty() && (flags.verify || flags.dry_run || !flags.to.empty())) {
    return absl::InvalidArgumentError(
        "--verify, --dry-run and --to need the folder that was staged");
  }
  if (flags.prune && flags.keep)
    return absl::InvalidArgumentError("--prune and --keep: one of them says how many stay");
  for (const std::string& path : flags.paths) {
    std::error_code error;
    const auto absolute = std::filesystem::canonical(path, error);
    if (error) return absl::InvalidArgumentError(path + ": " + error.message());
    if (!IsValidUtf8(absolute.string()))
      return absl::InvalidArgumentError(path + ": its full path is not valid UTF-8");
    request.add_paths(absolute.string());
  }
  const std::string to = WithoutSlashes(flags.to);
  if (!to.empty() && (!to.starts_with('/') || !IsValidUtf8(to))) {
    return absl::InvalidArgumentError("--to " + flags.to +
                                      ": give an absolute path in UTF-8, the same on all hosts");
  }
  MUSTER_ASSIGN_OR_RETURN(*request.mutable_inventory(), ReadInventory(flags.machines));
  request.set_default_transport(flags.transport);
  if (flags.port_range) *request.mutable_port_range() = *flags.port_range;
  request.set_link_path(to);
  request.set_keep(flags.prune ? 1 : flags.keep.value_or(kDefaultKeep));
  request.set_verify(flags.verify);
  request.set_dry_run(flags.dry_run);
  return request;
}

int Run(const StageFlags& flags) {
  const auto request = MakeRequest(flags);
  if (!request.ok())
    return Fail(absl::InvalidArgumentError(ErrorText(request.status())), flags.json);
  Client client(ConnectOrStart(StateDir()));
  const auto end = RunStage(client, *request, STDERR_FILENO, Style::For(STDERR_FILENO));
  if (!end.ok()) return Fail(end.status(), flags.json);
  if (flags.json) {
    PrintLine(StageJson(*request, *end));
  } else {
    WriteAll(STDOUT_FILENO, StageText(*request, *end, Style::For(STDOUT_FILENO)));
  }
  return StageExitCode(*request, *end);
}

}  // namespace

Command AddStage(CLI::App& root) {
  const auto flags = std::make_shared<StageFlags>();
  CLI::App* app = root.add_subcommand("stage", "Put a tree of files on all machines");
  app->add_option("PATH", flags->paths, "A folder, or files and folders")->type_name("PATH");
  AddMachineFlags(app, &flags->machines);
  ParsedOption(app, "--transport", &flags->transport, CheckedTransport,
               "local|direct|ssh|openssh|command",
               "How hosts whose line says nothing are reached (docs/transports.md)")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join);
  app->add_option("--to", flags->to, "A link on every host that leads to the staged folder")
      ->type_name("PATH");
  NumberOption(app, "--keep", &flags->keep, 1, 1000,
               "Versions that stay besides those in use (default: 4)");
  app->add_flag("--prune", flags->prune, "Remove all other versions that are not in use");
  app->add_flag("--verify", flags->verify, "Read what is there, and mend what is damaged");
  app->add_flag("--dry-run", flags->dry_run, "Change nothing: say what is missing or damaged");
  ParsedOption(app, "--port-range", &flags->port_range, ParsePortRange, "FIRST-LAST",
               "Ports that firewalls leave open between the hosts");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
