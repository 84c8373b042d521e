// muster serve: the controller, here or in the background; and its end.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <thread>

#include "controller/api/connect.h"
#include "controller/api/state_dir.h"
#include "controller/cli/background.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/controller_process.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"

namespace muster::cli {
namespace {

constexpr auto kEndTimeout = std::chrono::seconds(20);

struct ServeFlags {
  std::string state_dir;
  bool background = false;
  bool stop = false;
  bool force = false;
};

constexpr char kFooter[] =
    R"(`muster submit` starts a controller by itself; `muster serve` is for a service manager. Only this
user can reach it. Ending it ends no job: ranks run on, and the next controller takes them up again.

Examples:
  muster serve                      in the foreground, log on stderr
  muster serve --background         start one unless it runs; its log is <state dir>/controller.log
  muster serve --stop               end it; refused while jobs are active
  muster serve --stop --force       end it all the same; jobs run on

Exit codes: 0 ok; 2 one runs already, or jobs are active; 125 it can't be started or reached.
)";

int Report(const absl::Status& status) {
  return status.ok() ? kExitOk : Fail(status, false);
}

int Background(const std::string& state_dir) {
  if (absl::Status started = StartController(state_dir); !started.ok()) return Report(started);
  Client client(ConnectToRunning(state_dir));
  const auto info = client.Call<v1::InfoRequest, v1::InfoResponse>(&Client::Stub::Info, {});
  if (!info.ok()) return Report(info.status());
  PrintLine(fmt::format("controller {}, pid {}, {}", info->version(), info->pid(), state_dir));
  return kExitOk;
}

absl::Status AskToEnd(const std::string& state_dir, bool force) {
  Client client(ConnectToRunning(state_dir));
  v1::ShutdownRequest request;
  request.set_force(force);
  return client.Call<v1::ShutdownRequest, v1::ShutdownResponse>(&Client::Stub::Shutdown, request)
      .status();
}

// Until it has let go of its state, so that another can start at once: it stops to answer before.
int Stop(const std::string& state_dir, bool force) {
  if (!api::StateLock::Holder(state_dir)) {
    PrintError("no controller runs for " + state_dir);
    return kExitOk;
  }
  auto deadline = std::chrono::steady_clock::now() + kEndTimeout;
  std::optional<pid_t> asked;
  while (const auto holder = api::StateLock::Holder(state_dir)) {
    if (asked && *holder != *asked) break;  // the next one
    // One that is starting answers soon, one that is ending never.
    if (!asked && api::Connect(state_dir).ok()) {
      const auto serving = api::StateLock::Holder(state_dir);  // its pid is written by now
      const absl::Status status = AskToEnd(state_dir, force);
      if (!status.ok() && !absl::IsUnavailable(status)) return Report(status);
      if (status.ok()) asked = serving;
      deadline = std::chrono::steady_clock::now() + kEndTimeout;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      return Report(absl::DeadlineExceededError("the controller does not end; see " + state_dir +
                                                "/controller.log"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return kExitOk;
}

int Run(const ServeFlags& flags) {
  if ((flags.background && flags.stop) || (flags.force && !flags.stop)) {
    PrintError("--background and --stop exclude each other; --force goes with --stop");
    return kExitUsage;
  }
  const std::string state_dir = StateDir(flags.state_dir);
  if (flags.stop) return Stop(state_dir, flags.force);
  if (flags.background) return Background(state_dir);
  return Report(RunController(state_dir));
}

}  // namespace

Command AddServe(CLI::App& root) {
  const auto flags = std::make_shared<ServeFlags>();
  CLI::App* app = root.add_subcommand("serve", "Run the controller, or end it");
  app->add_option("--state-dir", flags->state_dir, "Its folder (default: this user's, docs/cli.md)")
      ->type_name("DIR");
  app->add_flag("--background", flags->background,
                "Start it unless it runs, and return when it answers");
  app->add_flag("--stop", flags->stop, "End the controller that runs");
  app->add_flag("--force", flags->force, "With --stop: also while jobs are active; they run on");
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
