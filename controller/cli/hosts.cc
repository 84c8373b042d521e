// muster hosts: what a hostfile or a --host list says.
#include "controller/hostfile/hostfile.h"

#include <fmt/format.h>

#include <memory>

#include "controller/cli/command.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/machine_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/render.h"

namespace muster::cli {
namespace {

struct HostsFlags {
  MachineFlags machines;
  bool json = false;
};

constexpr char kFooter[] =
    R"(Examples:
  muster hosts --hostfile hosts
  muster hosts --host node[01-16]:8 --json
  muster hosts --hostfile hosts --exclude gpu07@gpu09:0,1
  muster hosts --hostfile auto

Exit codes: 0 ok; 2 the hosts are not right (every error is on stderr as file:line: message).
)";

std::string Or(bool has, const std::string& text) {
  return has ? text : "-";
}

std::string Remarks(const v1::Host& host) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : " ") + text; };
  if (host.spare()) add("spare");
  if (host.gpus_size() > 0) {
    std::string gpus;
    for (const uint32_t gpu : host.gpus()) gpus += (gpus.empty() ? "" : ",") + std::to_string(gpu);
    add("gpus=" + gpus);
  }
  if (host.has_type()) add("type=" + host.type());
  if (host.has_addr()) add("addr=" + host.addr());
  if (host.has_iface()) add("iface=" + host.iface());
  if (host.has_transport()) add("transport=" + host.transport());
  if (host.has_worker_port()) add("worker_port=" + std::to_string(host.worker_port()));
  return out;
}

std::string HostTable(const v1::Inventory& inventory) {
  Table table({"HOST", "SLOTS", "USER", "PORT", "LINE", "OPTIONS"});
  table.AlignRight({1, 3, 4});
  for (const v1::Host& host : inventory.hosts()) {
    table.Add({host.host(), Or(host.has_slots(), std::to_string(host.slots())),
               Or(host.has_user(), host.user()), Or(host.has_port(), std::to_string(host.port())),
               std::to_string(host.line()), Remarks(host)});
  }
  return table.Render(Style::For(1));
}

int Run(const HostsFlags& flags) {
  const Machines machines = ReadMachines(flags.machines);
  const hostfile::Result& result = machines.result;
  const std::string& source = machines.source;
  if (!result.ok()) {
    WriteAll(2, hostfile::FormatErrors(source, result.errors));
    if (flags.json) PrintLine(hostfile::ToJson(result));
    return kExitUsage;
  }
  for (const uint32_t line : result.inventory.warnings()) {
    WriteAll(2, fmt::format("{}:{}: warning: '_' is not allowed in host names by RFC 1123\n",
                            source, line));
  }
  if (flags.json) {
    PrintLine(hostfile::ToJson(result));
  } else {
    WriteAll(1, HostTable(result.inventory));
  }
  return kExitOk;
}

}  // namespace

Command AddHosts(CLI::App& root) {
  const auto flags = std::make_shared<HostsFlags>();
  CLI::App* app =
      root.add_subcommand("hosts", "Check a hostfile and print its hosts in rank order");
  AddMachineFlags(app, &flags->machines);
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
