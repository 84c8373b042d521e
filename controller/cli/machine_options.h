#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "controller/hostfile/hostfile.h"
#include "muster/v1/job.pb.h"

namespace CLI {
class App;
}

// Which machines: the flags that every command over hosts has, and the inventory they give.

namespace muster::cli {

struct MachineFlags {
  std::string hostfile;  // a path, or "auto": the scheduler's allocation
  std::string host;
  std::string include;
  std::string exclude;
};

// Adds --hostfile, --host, --include and --exclude to a subcommand; `flags` outlives the app.
void AddMachineFlags(CLI::App* app, MachineFlags* flags);

// What the flags say, and where it is said: `source` is what errors name (a path, "--host", a
// scheduler's variable, "--include ...").
struct Machines {
  hostfile::Result result;
  std::string source;
};

// Reads the hostfile, the list or the environment, and selects. Never falls back to this machine.
Machines ReadMachines(const MachineFlags& flags);

// The same for who only wants the hosts. InvalidArgument: what is wrong, several lines for several
// errors, each with its place.
absl::StatusOr<v1::Inventory> ReadInventory(const MachineFlags& flags);

}  // namespace muster::cli
