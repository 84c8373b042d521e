// muster why: why a job ended as it did, on one screen.
#include <memory>

#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/cli/summary.h"
#include "controller/why/render.h"

namespace muster::cli {
namespace {

struct WhyFlags {
  std::string job = "last";
  bool json = false;
};

constexpr char kFooter[] =
    R"(Which rank failed first on which host, how it ended, the first words of its error, what the kernel's
log of that host said at that minute, what that most likely means and what to do about it, what all
other ranks were doing, and how each node proved its end. For a job that runs: what its ranks do.

Hints come from rules: those of the recipe ([why] rules), those in ~/.config/muster/rules/*.toml and
/etc/muster/rules/*.toml, and the shipped ones. docs/why.md says how to write them.

Examples:
  muster why                  the newest job
  muster why 3 --json         for programs

Exit codes: 0 ok; 2 no such job; 125 the controller can't be reached.
)";

int Run(const WhyFlags& flags) {
  Client client(ConnectIfUsed(StateDir()));
  v1::GetJobRequest request;
  request.set_job(flags.job);
  const auto response =
      client.Call<v1::GetJobRequest, v1::GetJobResponse>(&Client::Stub::GetJob, request);
  if (!response.ok()) return Fail(response.status(), flags.json);
  const why::Why why = why::ExplainJob(response->job());
  if (flags.json) {
    PrintLine(why::Json(why));
    return kExitOk;
  }
  for (const std::string& line : WhyLines(why, Style::For(1))) PrintLine(line);
  return kExitOk;
}

}  // namespace

Command AddWhy(CLI::App& root) {
  const auto flags = std::make_shared<WhyFlags>();
  CLI::App* app = root.add_subcommand("why", "Why a job ended as it did, on one screen");
  app->add_option("JOB", flags->job, "Number, name or 'last' (default)")->type_name("JOB");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
