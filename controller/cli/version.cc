// muster version: this program and the controller that runs.
#include "common/version.h"

#include <memory>

#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_json.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"

namespace muster::cli {
namespace {

// Asks a running controller; never starts one.
absl::StatusOr<v1::InfoResponse> AskRunning() {
  Client client(ConnectToRunning(StateDir()));
  return client.Call<v1::InfoRequest, v1::InfoResponse>(&Client::Stub::Info, {});
}

int Run(bool json) {
  const auto info = AskRunning();
  if (json) {
    PrintLine(InfoJson(kVersion, info.ok() ? &*info : nullptr));
    return kExitOk;
  }
  PrintLine(std::string("muster ") + kVersion);
  if (info.ok()) {
    PrintLine("controller " + info->version() + ", pid " + std::to_string(info->pid()) + ", " +
              info->state_dir());
  }
  return kExitOk;
}

}  // namespace

Command AddVersion(CLI::App& root) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* app =
      root.add_subcommand("version", "Versions of this program and of the controller that runs");
  JsonFlag(app, json.get());
  app->footer("Examples:\n  muster version\n  muster version --json\n\nExit codes: 0 ok.\n");
  return {app, [json](const Invocation&) { return Run(*json); }};
}

}  // namespace muster::cli
