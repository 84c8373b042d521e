#include "controller/cli/machine_options.h"

#include <fmt/format.h>

#include <utility>

#include "controller/cli/options.h"
#include "controller/hostfile/allocation.h"
#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/select.h"

namespace muster::cli {
namespace {

Machines Failed(std::string source, const absl::Status& status) {
  Machines out;
  out.source = std::move(source);
  out.result.errors.push_back({0, std::string(status.message())});
  return out;
}

Machines ReadAll(const MachineFlags& flags) {
  Machines out;
  if (flags.hostfile == "auto") {
    auto inventory = hostfile::ReadAllocation(hostfile::AllocationSources::Real());
    if (!inventory.ok()) return Failed("--hostfile auto", inventory.status());
    out.source = inventory->source();
    out.result.inventory = *std::move(inventory);
    return out;
  }
  const bool from_file = !flags.hostfile.empty();
  out.source = from_file ? flags.hostfile : "--host";
  out.result =
      from_file ? hostfile::ReadHostfile(flags.hostfile) : hostfile::ParseHostList(flags.host);
  out.result.inventory.set_source(out.source);
  return out;
}

using Selecting = absl::Status (*)(std::string_view text, v1::Inventory* inventory);

// --include and --exclude, when given, on what was read.
Machines Select(Machines machines, std::string_view flag, const std::string& text,
                Selecting select) {
  if (text.empty() || !machines.result.ok()) return machines;
  const absl::Status status = select(text, &machines.result.inventory);
  return status.ok() ? machines : Failed(fmt::format("{} {}", flag, text), status);
}

// An empty value is a shell variable that is not set, not the wish for all machines.
CLI::Option* Machine(CLI::App* app, const std::string& name, std::string* target,
                     const std::string& value_name, const std::string& help) {
  const auto parse = [](const std::string& text) -> absl::StatusOr<std::string> {
    if (!text.empty()) return text;
    return absl::InvalidArgumentError("is empty: give a value, or leave the flag out");
  };
  return ParsedOption(app, name, target, parse, value_name, help)->group("Machines");
}

}  // namespace

void AddMachineFlags(CLI::App* app, MachineFlags* flags) {
  Machine(app, "--hostfile", &flags->hostfile, "FILE",
          "One host a line (docs/hostfile.md); auto: from Slurm, PBS or LSF");
  Machine(app, "--host", &flags->host, "LIST", "Hosts here instead: HOST[:SLOTS],...");
  Machine(app, "--include", &flags->include, "HOSTS",
          "Only these hosts and devices: HOST[:0,2][@HOST...]");
  Machine(app, "--exclude", &flags->exclude, "HOSTS", "All but these, in the same form");
}

Machines ReadMachines(const MachineFlags& flags) {
  if (!flags.hostfile.empty() && !flags.host.empty()) {
    return Failed("--hostfile and --host",
                  absl::InvalidArgumentError("both are given: leave one of them out"));
  }
  if (flags.hostfile.empty() && flags.host.empty()) {
    return Failed("no machines", absl::InvalidArgumentError(
                                     "give one of --hostfile FILE (or auto, inside an allocation) "
                                     "and --host LIST"));
  }
  if (!flags.include.empty() && !flags.exclude.empty()) {
    return Failed("--include and --exclude",
                  absl::InvalidArgumentError("both are given: one of them says it all"));
  }
  Machines out = Select(ReadAll(flags), "--include", flags.include, hostfile::Include);
  return Select(std::move(out), "--exclude", flags.exclude, hostfile::Exclude);
}

absl::StatusOr<v1::Inventory> ReadInventory(const MachineFlags& flags) {
  Machines machines = ReadMachines(flags);
  if (machines.result.ok()) return std::move(machines.result.inventory);
  return absl::InvalidArgumentError(FormatErrors(machines.source, machines.result.errors));
}

}  // namespace muster::cli
