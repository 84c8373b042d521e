#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

constexpr uint64_t kMuchMemory = uint64_t{1} << 30;  // more than a driver keeps for itself
// nvidia-smi's clocks_event_reasons: hardware slowdown, hardware thermal, power brake, software
// thermal.
constexpr uint64_t kSlowdown = 0x8 | 0x20 | 0x40 | 0x80;

// The devices as they are now; of a worker that does not say, as it greeted.
const google::protobuf::RepeatedPtrField<v1::Device>& DevicesOf(const NodeFacts& node) {
  return node.probe.received_ns() == 0 ? node.hello.devices() : node.probe.devices();
}

bool Uses(const NodeFacts& node, uint32_t device) {
  return std::find(node.devices.begin(), node.devices.end(), device) != node.devices.end();
}

// A tool's own words -> what helps.
std::string FixForTool(const std::string& error, const std::string& host) {
  if (error.find("version mismatch") != std::string::npos) {
    return absl::StrCat("the driver was updated under a loaded module: reboot ", host,
                        ", or end what uses the devices and run: rmmod nvidia_uvm nvidia && "
                        "modprobe nvidia");
  }
  if (error.find("communicate with the NVIDIA driver") != std::string::npos)
    return absl::StrCat("on ", host, ": modprobe nvidia; dmesg | grep NVRM");
  if (error.find("can't be read") != std::string::npos) {
    return absl::StrCat("run nvidia-smi or mthreads-gmi on ", host,
                        "; see with `type -a` that no other program of that name comes first");
  }
  if (error.find("no answer") != std::string::npos)
    return absl::StrCat("a device of ", host, " hangs: dmesg | grep -i xid there, then reboot it");
  return absl::StrCat("run nvidia-smi or mthreads-gmi on ", host);
}

std::string Holders(const v1::Device& device) {
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(device.holders_size()));
  for (const v1::DeviceHolder& holder : device.holders()) {
    std::string who = absl::StrCat("pid ", holder.pid());
    if (holder.user().empty()) {
      absl::StrAppend(&who, " (", holder.command(), ", in another container)");
    } else {
      absl::StrAppend(&who, " (", holder.user(), ": ", holder.command(), ")");
    }
    texts.push_back(std::move(who));
  }
  return absl::StrJoin(texts, ", ");
}

// Only what can be ended from this host's own pid namespace has a pid that means anything there.
std::string FixForHolders(const v1::Device& device, const std::string& host) {
  std::vector<std::string> pids;
  pids.reserve(static_cast<size_t>(device.holders_size()));
  for (const v1::DeviceHolder& holder : device.holders()) {
    if (!holder.user().empty()) pids.push_back(absl::StrCat(holder.pid()));
  }
  const bool elsewhere = static_cast<int>(pids.size()) < device.holders_size();
  const std::string look = absl::StrCat("fuser -v /dev/nvidia", device.index());
  if (pids.empty())
    return absl::StrCat("on ", host, elsewhere ? ", outside of its containers: " : ": ", look);
  return absl::StrCat(
      "wait for it, or end it: on ", host, ": kill ", absl::StrJoin(pids, " "),
      elsewhere ? absl::StrCat("; for the others, outside of containers: ", look) : "");
}

// The different texts of a node's devices (those that the plan uses), "A, B"; "" without any.
template <typename Text>
std::string Distinct(const NodeFacts& node, Text text) {
  std::set<std::string> texts;
  for (const v1::Device& device : node.probe.devices()) {
    if (!text(device).empty() && (node.devices.empty() || Uses(node, device.index())))
      texts.insert(text(device));
  }
  return absl::StrJoin(texts, ", ");
}

// Faults of the hardware or its driver, not of a program (NVIDIA's Xid catalogue).
const char* MeaningOf(uint32_t xid) {
  switch (xid) {
    case 48:
      return "double-bit ECC error";
    case 62:
      return "micro-controller halted";
    case 63:
    case 64:
      return "row remapping or page retirement";
    case 74:
      return "NVLink error";
    case 79:
      return "the device has fallen off the bus";
    case 92:
      return "many single-bit ECC errors";
    case 94:
      return "contained ECC error";
    case 95:
      return "uncontained ECC error";
    case 119:
    case 120:
      return "the GPU system processor does not answer";
    case 140:
      return "unrecovered ECC error";
    default:
      return nullptr;
  }
}

}  // namespace

void CheckDevices(const Nodes& nodes, const Options&, Findings& out) {
  std::vector<std::string> counts;
  counts.reserve(nodes.size());
  for (const auto& node : nodes) {
    const int count = DevicesOf(node).size();
    counts.push_back(node.absent.empty() ? absl::StrCat(count, count == 1 ? " device" : " devices")
                                         : "");
  }
  const std::string majority = Majority(counts);
  const bool most_have = !majority.empty() && !majority.starts_with("0 ");
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeFacts& node = nodes[i];
    if (!node.absent.empty()) continue;
    if (!node.probe.device_error().empty()) {
      out.push_back({"devices", Severity::kError, node.host, node.probe.device_error(),
                     most_have ? majority : "", FixForTool(node.probe.device_error(), node.host)});
      continue;
    }
    std::set<uint32_t> found;
    for (const auto& device : DevicesOf(node)) found.insert(device.index());
    std::vector<uint32_t> missing;
    for (const uint32_t device : node.devices) {
      if (!found.contains(device)) missing.push_back(device);
    }
    // Where nobody has devices, ranks run on the processors, unless the job says otherwise.
    const bool needed = most_have || node.needs_devices || !found.empty();
    if (missing.empty() || !needed) continue;
    out.push_back(
        {"devices", Severity::kError, node.host,
         absl::StrCat("the plan uses ", node.devices.size(), " devices, but only ", found.size(),
                      " were found (missing: ", absl::StrJoin(missing, ","), ")"),
         found.empty() && most_have ? majority : "",
         found.empty() ? absl::StrCat("on ", node.host,
                                      ": nvidia-smi or mthreads-gmi must list the devices; a job "
                                      "for the processors needs no gpus= and --device cpu")
                       : absl::StrCat("set slots=", found.size(), " for ", node.host,
                                      " in the hostfile, or look for the lost device")});
  }
}

void CheckDeviceMemory(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    for (const auto& device : node.probe.devices()) {
      const bool used = device.memory_used_bytes() > kMuchMemory ||
                        (device.holders_size() > 0 && device.memory_used_bytes() == 0);
      if (!used || (!node.devices.empty() && !Uses(node, device.index()))) continue;
      const std::string holders = Holders(device);
      const bool most = 2 * device.memory_used_bytes() > device.memory_total_bytes();
      out.push_back(
          {"device_memory", most ? Severity::kError : Severity::kWarning, node.host,
           absl::StrCat("device ", device.index(), ": ", Bytes(device.memory_used_bytes()), " of ",
                        Bytes(device.memory_total_bytes()), " in use by ",
                        holders.empty() ? "nobody that nvidia-smi names" : holders),
           "", FixForHolders(device, node.host)});
    }
  }
}

void CheckDeviceHealth(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    const auto warn = [&](const std::string& value, const std::string& fix) {
      out.push_back({"device_health", Severity::kWarning, node.host, value, "", fix});
    };
    for (const auto& device : node.probe.devices()) {
      const std::string name = absl::StrCat("device ", device.index());
      if (device.ecc_uncorrected() > 0) {
        warn(absl::StrCat(name, ": ", device.ecc_uncorrected(),
                          " uncorrected ECC errors since the driver was loaded"),
             absl::StrCat("drain ", node.host, " and run: nvidia-smi -r -i ", device.index()));
      }
      if ((device.throttle_reasons() & kSlowdown) != 0) {
        warn(absl::StrCat(name, ": its clocks are held down by heat or power"),
             absl::StrCat("on ", node.host,
                          ": nvidia-smi -q -d PERFORMANCE,TEMPERATURE; check fans "
                          "and power"));
      }
      if (device.mig()) {
        warn(name + " is split into MIG instances: there is no whole device to be had",
             absl::StrCat("on ", node.host, ": nvidia-smi -mig 0 -i ", device.index()));
      }
    }
    // One line a fault and device, with the newest.
    std::map<std::pair<std::string, uint32_t>, std::pair<int, std::string>> faults;
    for (const auto& fault : node.probe.kernel_faults()) {
      auto& [count, text] = faults[{fault.bus_id(), fault.xid()}];
      ++count;
      text = fault.text();
    }
    for (const auto& [key, seen] : faults) {
      const char* const meaning = MeaningOf(key.second);
      if (meaning == nullptr) {
        out.push_back(
            {"device_health", Severity::kNote, node.host,
             absl::StrCat("Xid ", key.second, " of the device at ", key.first, ", ", seen.first,
                          " times within the last day, usually a program's "
                          "fault: ",
                          seen.second),
             "", ""});
        continue;
      }
      warn(absl::StrCat("Xid ", key.second, " (", meaning, ") of the device at ", key.first, ", ",
                        seen.first, " times within the last day: ", seen.second),
           absl::StrCat("drain ", node.host,
                        ", reset the device or reboot; if it comes back, have "
                        "the device replaced"));
    }
  }
}

void CheckDriver(const Nodes& nodes, const Options&, Findings& out) {
  CompareAll(
      nodes, "driver", Severity::kWarning, "install the same driver on all hosts",
      [&](const NodeFacts& node) {
        const std::string drivers =
            Distinct(node, [](const v1::Device& device) { return device.driver(); });
        return drivers.empty() ? "" : "driver " + drivers;
      },
      out);
  CompareAll(
      nodes, "driver", Severity::kWarning,
      "the slowest type sets the pace; use hosts of one type, by type= and --exclude",
      [&](const NodeFacts& node) {
        return Distinct(node, [](const v1::Device& device) { return device.name(); });
      },
      out);
}

}  // namespace muster::preflight
