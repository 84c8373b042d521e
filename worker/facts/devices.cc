#include "worker/facts/devices.h"

#include <set>

#include "worker/facts/user_name.h"

namespace muster::facts {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

// Asks for the fields, without those that this version of the tool does not know.
ToolOutput Query(const std::string& tool, std::vector<std::string>& fields,
                 const Environment& environment, TimePoint deadline) {
  while (true) {
    ToolOutput output =
        RunTool({tool, "--query-gpu=" + Join(fields), "--format=csv,noheader,nounits"}, environment,
                deadline);
    if (output.exit_code == 0 || fields.size() <= 1) return output;
    const std::string unknown = UnknownField(output.out + output.err);
    if (unknown.empty() || std::erase(fields, unknown) == 0) return output;
  }
}

void NameHolders(const ProcReader& proc, std::vector<v1::Device>& devices) {
  for (v1::Device& device : devices) {
    for (v1::DeviceHolder& holder : *device.mutable_holders()) {
      const auto pid = static_cast<pid_t>(holder.pid());
      const auto uid = proc.Uid(pid);
      if (!uid) continue;  // in another pid namespace
      holder.set_user(UserName(*uid));
      holder.set_command(proc.Command(pid));
    }
  }
}

DeviceList FindNvidia(const Environment& environment, TimePoint deadline, bool& found) {
  DeviceList list;
  std::vector<std::string> fields = NvidiaFields();
  const ToolOutput output = Query("nvidia-smi", fields, environment, deadline);
  found = output.found;
  if (!found) return list;
  list.error = ToolError(output);
  if (output.exit_code != 0) return list;
  list.devices = ParseGpus(output.out, fields, "cuda");
  list.error = NonsenseError(output, list.devices);
  if (list.devices.empty()) return list;
  const ToolOutput apps =
      RunTool({"nvidia-smi", "--query-compute-apps=gpu_uuid,pid,process_name,used_memory",
               "--format=csv,noheader,nounits"},
              environment, deadline);
  if (apps.exit_code == 0) AddHolders(apps.out, list.devices);
  return list;
}

DeviceList FindMusa(const Environment& environment, TimePoint deadline) {
  DeviceList list;
  std::vector<std::string> fields = MusaFields();
  const ToolOutput output = Query("mthreads-gmi", fields, environment, deadline);
  if (!output.found) return list;
  list.devices = ParseGpus(output.out, fields, "musa");
  if (output.exit_code == 0 && !list.devices.empty()) return list;
  const ToolOutput table = RunTool({"mthreads-gmi"}, environment, deadline);
  list.error = ToolError(table);
  list.devices = ParseMusaTable(table.out);
  if (list.error.empty()) list.error = NonsenseError(table, list.devices);
  return list;
}

}  // namespace

const std::vector<std::string>& NvidiaFields() {
  static const auto* const fields = new std::vector<std::string>{
      "index",
      "uuid",
      "pci.bus_id",
      "name",
      "driver_version",
      "memory.total",
      "memory.used",
      "ecc.errors.uncorrected.volatile.total",
      "clocks_event_reasons.active",     // since driver 535
      "clocks_throttle_reasons.active",  // its older name; newer drivers know both
      "mig.mode.current",
  };
  return *fields;
}

const std::vector<std::string>& MusaFields() {
  static const auto* const fields = new std::vector<std::string>{
      "index", "uuid", "name", "driver_version", "memory.total", "memory.used"};
  return *fields;
}

DeviceList FindDevices(const Environment& environment, const ProcReader& proc, TimePoint deadline) {
  bool found = false;
  DeviceList list = FindNvidia(environment, deadline, found);
  if (!found) list = FindMusa(environment, deadline);
  NameHolders(proc, list.devices);
  return list;
}

std::vector<v1::Device> FakeDevices(uint32_t count) {
  std::vector<v1::Device> devices;
  for (uint32_t i = 0; i < count; ++i) {
    v1::Device& device = devices.emplace_back();
    device.set_index(i);
    device.set_kind("fake");
    device.set_name("fake device");
    device.set_memory_total_bytes(uint64_t{80} << 30);
  }
  return devices;
}

}  // namespace muster::facts
