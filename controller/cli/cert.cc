// muster cert: the authority and the certificates for direct connections.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "common/status.h"
#include "common/suggest.h"
#include "controller/certs/authority.h"
#include "controller/certs/folder.h"
#include "controller/cli/cert_hosts.h"
#include "controller/cli/cert_list.h"
#include "controller/cli/command.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/machine_options.h"
#include "controller/cli/options.h"
#include "controller/cli/output.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

constexpr size_t kLargestRequest = 64 << 10;

struct CertFlags {
  std::string action;
  std::vector<std::string> hosts;
  MachineFlags machines;
  std::string transport;
  std::string name;
  std::string tls_dir;
  std::string remote_dir;
  std::string request;
  uint32_t days = 0;
  bool controller = false;
  bool ca = false;
  bool finish = false;
  bool json = false;
};

const std::vector<std::string>& Actions() {
  static const std::vector<std::string> actions = {"init",  "push", "rotate",
                                                   "issue", "list", "forget"};
  return actions;
}

constexpr char kFooter[] =
    R"(Actions:
  init            make the authority and the controller's certificate on this machine
  push HOST...    let each host make a key pair, sign its request, and give it the certificate;
                  over ssh (or --transport), also where the host's line says transport=direct
  rotate HOST...  the same over the hosts' own transports, and a new certificate for the controller;
                  with --ca from a new authority, while the old one is trusted until --finish
  issue HOST      sign a request that you bring by hand (--request FILE): the certificate on stdout
  list            all certificates and when they end
  forget HOST...  strike hosts that are gone from the list

HOST... are lines of --hostfile, or hosts without one. With a hostfile and no HOST: all of it.

Examples:
  muster cert init --name lab
  muster cert push --hostfile hosts
  muster cert rotate --hostfile hosts
  muster cert rotate --ca --hostfile hosts && muster cert rotate --finish --hostfile hosts
  muster cert list

Exit codes: 0 ok; 2 usage, or files that are no good; 120 some hosts have got no certificate.
)";

int64_t NowSeconds() {
  return Clock::Real().RealtimeNs() / 1'000'000'000;
}

certs::Authority::Days DaysOf(const CertFlags& flags) {
  certs::Authority::Days days;
  if (flags.days > 0) days.certificate = static_cast<int>(flags.days);
  return days;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ",") + word;
  return out;
}

// The hosts of the flags: those of the hostfile that are named, or the words themselves.
absl::StatusOr<std::vector<v1::Host>> HostsOf(const CertFlags& flags) {
  MachineFlags machines = flags.machines;
  const bool from_file = !machines.hostfile.empty() || !machines.host.empty();
  if (!from_file && flags.hosts.empty()) {
    return absl::InvalidArgumentError("which hosts? Name them, or give --hostfile");
  }
  if (!from_file) machines.host = Joined(flags.hosts);
  MUSTER_ASSIGN_OR_RETURN(const v1::Inventory inventory, ReadInventory(machines));
  std::vector<v1::Host> out;
  std::vector<std::string> known;
  for (const v1::Host& host : inventory.hosts()) {
    known.push_back(host.host());
    const bool named =
        std::find(flags.hosts.begin(), flags.hosts.end(), host.host()) != flags.hosts.end();
    if (!from_file || flags.hosts.empty() || named) out.push_back(host);
  }
  for (const std::string& word : flags.hosts) {
    if (from_file && std::find(known.begin(), known.end(), word) == known.end()) {
      return absl::InvalidArgumentError("host '" + word + "' is not in the hostfile" +
                                        DidYouMean(word, known));
    }
  }
  return out;
}

// 0, or 120 when some host failed. `direct`: also over direct connections.
absl::StatusOr<int> Renew(const CertFlags& flags, certs::Authority& authority, bool direct) {
  CertHosts what = {.hosts = {},
                    .transports = flags.transport,
                    .remote_folder = flags.remote_dir,
                    .folder = flags.tls_dir};
  MUSTER_ASSIGN_OR_RETURN(what.hosts, HostsOf(flags));
  for (v1::Host& host : what.hosts) {
    // A host without a certificate can't be reached directly.
    if (!direct && host.transport() == "direct") host.clear_transport();
  }
  size_t failed = 0;
  RenewHosts(what, authority, [&](const CertResult& result) {
    if (result.folder.ok()) {
      if (!flags.json) PrintLine(result.host + ": new certificate in " + *result.folder);
    } else {
      ++failed;
      PrintError(result.host + ": " + EscapeForDisplay(ErrorText(result.folder.status())));
    }
  });
  if (failed == 0) return kExitOk;
  PrintError(fmt::format("{} of {} hosts have got no certificate", failed, what.hosts.size()));
  return kExitPreflight;
}

absl::StatusOr<int> Init(const CertFlags& flags) {
  const std::string name = flags.name.empty() ? "muster" : flags.name;
  MUSTER_ASSIGN_OR_RETURN(
      const certs::Authority authority,
      certs::Authority::Init(flags.tls_dir, name, DaysOf(flags), Clock::Real()));
  PrintLine(fmt::format("authority '{}' in {}; next: muster cert push HOST...", authority.ca(),
                        flags.tls_dir));
  return kExitOk;
}

absl::StatusOr<int> Rotate(const CertFlags& flags, certs::Authority& authority) {
  const bool hosts_named =
      !flags.hosts.empty() || !flags.machines.hostfile.empty() || !flags.machines.host.empty();
  if (flags.finish) {
    MUSTER_RETURN_IF_ERROR(authority.FinishRotation());
    PrintLine("authority '" + authority.ca() + "': only the new one is trusted here");
    if (hosts_named) return Renew(flags, authority, true);
    return kExitOk;
  }
  if (flags.ca) MUSTER_RETURN_IF_ERROR(authority.BeginRotation());
  int code = kExitOk;
  if (!flags.controller || hosts_named) {
    MUSTER_ASSIGN_OR_RETURN(code, Renew(flags, authority, true));
  }
  MUSTER_ASSIGN_OR_RETURN(const auto behind, authority.HostsOfPrevious());
  if (authority.rotating() && !behind.empty()) {
    // They trust the old authority alone.
    PrintError(
        fmt::format("the controller keeps its certificate of the old authority until these "
                    "hosts have new ones: {}",
                    Joined(behind)));
    return code == kExitOk ? kExitPreflight : code;
  }
  MUSTER_RETURN_IF_ERROR(authority.RenewController());
  PrintLine("controller: new certificate in " + flags.tls_dir);
  if (authority.rotating()) {
    PrintLine("both authorities are trusted; end it with: muster cert rotate --finish");
  }
  return code;
}

absl::StatusOr<int> Issue(const CertFlags& flags, certs::Authority& authority) {
  if (flags.hosts.size() != 1 || flags.request.empty()) {
    return absl::InvalidArgumentError(
        "issue takes one HOST and --request FILE; keys are made on the hosts: `muster cert push`");
  }
  std::ifstream file(flags.request, std::ios::binary);
  if (!file) return PosixError("open " + flags.request);
  std::string pem(kLargestRequest, '\0');
  file.read(pem.data(), static_cast<std::streamsize>(pem.size()));
  pem.resize(static_cast<size_t>(file.gcount()));
  const auto issued = authority.Issue(flags.hosts.front(), pem);
  if (!issued.ok()) return Annotate(issued.status(), flags.request);
  WriteAll(1, *issued);
  return kExitOk;
}

absl::StatusOr<int> Dispatch(const CertFlags& flags) {
  if (flags.action == "init") return Init(flags);
  MUSTER_ASSIGN_OR_RETURN(certs::Authority authority,
                          certs::Authority::Open(flags.tls_dir, DaysOf(flags), Clock::Real()));
  if (flags.action == "push") return Renew(flags, authority, false);
  if (flags.action == "rotate") return Rotate(flags, authority);
  if (flags.action == "issue") return Issue(flags, authority);
  if (flags.action == "forget") {
    for (const std::string& host : flags.hosts) MUSTER_RETURN_IF_ERROR(authority.Forget(host));
    return kExitOk;
  }
  MUSTER_ASSIGN_OR_RETURN(const std::string text,
                          flags.json ? CertJson(authority, NowSeconds())
                                     : CertTable(authority, NowSeconds(), Style::For(1)));
  if (flags.json) {
    PrintLine(text);
  } else {
    WriteAll(1, text);
  }
  return kExitOk;
}

int Run(CertFlags flags) {
  if (std::find(Actions().begin(), Actions().end(), flags.action) == Actions().end()) {
    PrintError("unknown action '" + flags.action + "'" + DidYouMean(flags.action, Actions()) +
               "\nsee 'muster cert --help'");
    return kExitUsage;
  }
  if (flags.tls_dir.empty()) flags.tls_dir = certs::DefaultFolder();
  const absl::StatusOr<int> code = Dispatch(flags);
  return code.ok() ? *code : Fail(code.status(), flags.json);
}

}  // namespace

Command AddCert(CLI::App& root) {
  const auto flags = std::make_shared<CertFlags>();
  CLI::App* app =
      root.add_subcommand("cert", "Certificates for direct connections: init, push, rotate, list");
  app->add_option("ACTION", flags->action, "What to do; see below")->required();
  app->add_option("HOST", flags->hosts, "Hosts");
  AddMachineFlags(app, &flags->machines);
  app->add_option("--transport", flags->transport,
                  "How hosts are reached whose line says nothing (docs/transports.md)");
  app->add_option("--name", flags->name, "init: name of the authority (default: muster)");
  NumberOption(app, "--days", &flags->days, 1, 3650, "How long certificates are good (365)");
  app->add_option("--remote-dir", flags->remote_dir,
                  "push, rotate: folder on the hosts (default: that of their musterd)")
      ->type_name("DIR");
  app->add_option("--request", flags->request, "issue: a certificate request (PKCS #10, PEM)")
      ->type_name("FILE");
  app->add_flag("--controller", flags->controller, "rotate: only the controller's own certificate");
  app->add_flag("--ca", flags->ca, "rotate: a new authority first");
  app->add_flag("--finish", flags->finish, "rotate: trust the new authority alone");
  app->add_option("--tls-dir", flags->tls_dir,
                  "Folder of the authority (default: ~/.config/muster/tls)")
      ->type_name("DIR");
  JsonFlag(app, &flags->json);
  app->footer(kFooter);
  return {app, [flags](const Invocation&) { return Run(*flags); }};
}

}  // namespace muster::cli
