// muster nodes: the machines that the controller knows.
#include <fmt/format.h>

#include <memory>

#include "common/clock.h"
#include "common/tls/credentials.h"
#include "controller/certs/folder.h"
#include "controller/cli/cert_list.h"
#include "controller/cli/check_view.h"
#include "controller/cli/client.h"
#include "controller/cli/command.h"
#include "controller/cli/connection.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/job_json.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

std::string Devices(const v1::WorkerHello& facts) {
  if (facts.devices().empty()) return "-";
  return fmt::format("{} x {}", facts.devices_size(), facts.devices(0).name());
}

std::string NodeTable(const v1::ListNodesResponse& nodes, const Style& style) {
  Table table(
      {"HOST", "STATE", "TRANSPORT", "CORES", "MEMORY", "DEVICES", "CHECKED", "JOBS", "ERROR"});
  table.AlignRight({3, 4});
  for (const v1::Node& node : nodes.nodes()) {
    const std::string state = LinkStateName(node.state());
    std::string jobs;
    for (const std::string& id : node.job_ids()) jobs += (jobs.empty() ? "" : ",") + id;
    table.Add({node.host(),
               node.state() == v1::LINK_STATE_UP ? style.Green(state) : style.Yellow(state),
               node.transport(), std::to_string(node.facts().cores()),
               fmt::format("{} GiB", node.facts().memory_bytes() >> 30), Devices(node.facts()),
               LastCheck(node, Clock::Real().RealtimeNs()), jobs.empty() ? "-" : jobs,
               EscapeForDisplay(node.error())});
  }
  return table.Render(style);
}

// Direct connections stop on the day a certificate ends, the controller's or a node's.
void WarnOfCertificates(const v1::ListNodesResponse& nodes) {
  const int64_t now_s = Clock::Real().RealtimeNs() / 1'000'000'000;
  const auto warn = [now_s](const std::string& whose, int64_t ends_s, const std::string& fix) {
    const std::string warning = CertificateWarning(whose, ends_s, now_s);
    if (!warning.empty()) PrintError("warning: " + warning + ": " + fix);
  };
  bool direct = false;
  for (const v1::Node& node : nodes.nodes()) {
    direct = direct || node.transport().starts_with("direct");
    warn(node.host(), node.facts().certificate_ends_s(), "muster cert rotate " + node.host());
  }
  if (!direct) return;
  const auto own = tls::Credentials(certs::DefaultFolder(), tls::Role::kController).Get();
  if (own.ok()) warn("controller", (*own)->own.not_after_s, "muster cert rotate --controller");
}

int Run(bool json) {
  Client client(ConnectIfUsed(StateDir()));
  auto nodes =
      client.Call<v1::ListNodesRequest, v1::ListNodesResponse>(&Client::Stub::ListNodes, {});
  if (absl::IsNotFound(nodes.status())) nodes = v1::ListNodesResponse();
  if (!nodes.ok()) return Fail(nodes.status(), json);
  if (json) {
    PrintLine(NodeListJson(*nodes));
  } else if (nodes->nodes().empty()) {
    PrintError("no nodes: the controller has no job");
  } else {
    WriteAll(1, NodeTable(*nodes, Style::For(1)));
    WarnOfCertificates(*nodes);
  }
  return kExitOk;
}

}  // namespace

Command AddNodes(CLI::App& root) {
  const auto json = std::make_shared<bool>(false);
  CLI::App* app =
      root.add_subcommand("nodes", "Machines of the controller's jobs and how they are reached");
  JsonFlag(app, json.get());
  app->footer(
      "Examples:\n  muster nodes\n  muster nodes --json\n\nExit codes: 0 ok; 125 the controller "
      "can't be reached.\n");
  return {app, [json](const Invocation&) { return Run(*json); }};
}

}  // namespace muster::cli
