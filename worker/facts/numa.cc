#include "worker/facts/numa.h"

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>

namespace muster::facts {
namespace {

constexpr uint32_t kMostCpus = 65536;

std::string ReadLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Names in a folder that are PCI addresses ("0000:3b:00.0"), in their order.
std::vector<std::string> PciAddresses(const std::string& folder) {
  std::vector<std::string> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return out;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (std::count(name.begin(), name.end(), ':') == 2) out.push_back(name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

// In a container /sys shows all devices of the machine; the driver's own list has those that are
// the container's.
std::vector<std::string> Devices(const std::string& root) {
  for (const char* folder :
       {"proc/driver/nvidia/gpus", "sys/bus/pci/drivers/nvidia", "sys/bus/pci/drivers/mtgpu"}) {
    if (auto found = PciAddresses(root + folder); !found.empty()) return found;
  }
  return {};
}

}  // namespace

std::vector<uint32_t> ParseCpuList(std::string_view text) {
  std::vector<uint32_t> out;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  while (!text.empty()) {
    uint32_t first = 0;
    const char* end = text.data() + text.size();
    auto parsed = std::from_chars(text.data(), end, first);
    uint32_t last = first;
    if (parsed.ec == std::errc() && parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    }
    const bool good = parsed.ec == std::errc() && first <= last && last < kMostCpus &&
                      (parsed.ptr == end || *parsed.ptr == ',');
    if (!good) return {};
    for (uint32_t cpu = first; cpu <= last; ++cpu) out.push_back(cpu);
    text.remove_prefix(
        std::min<size_t>(static_cast<size_t>(parsed.ptr - text.data()) + 1, text.size()));
  }
  return out;
}

std::vector<uint32_t> OwnCpus() {
  std::vector<uint32_t> out;
  // The kernel's set may be larger than glibc's usual one.
  for (size_t count = CPU_SETSIZE; count <= kMostCpus; count *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(count), [](cpu_set_t* one) { CPU_FREE(one); });
    const size_t size = CPU_ALLOC_SIZE(count);
    if (!set || sched_getaffinity(0, size, set.get()) != 0) continue;
    for (size_t cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, size, set.get())) out.push_back(static_cast<uint32_t>(cpu));
    }
    break;
  }
  return out;
}

std::vector<uint32_t> CpusNearDevice(uint32_t device, const std::string& root) {
  const std::vector<std::string> devices = Devices(root);
  if (device >= devices.size()) return {};
  const std::string node = ReadLine(root + "sys/bus/pci/devices/" + devices[device] + "/numa_node");
  if (node.empty() || node[0] == '-') return {};
  return ParseCpuList(ReadLine(root + "sys/devices/system/node/node" + node + "/cpulist"));
}

std::vector<uint32_t> CpusToBind(uint32_t device, const std::vector<uint32_t>& own,
                                 const std::string& root) {
  const std::vector<uint32_t> near = CpusNearDevice(device, root);
  std::vector<uint32_t> out;
  std::set_intersection(near.begin(), near.end(), own.begin(), own.end(), std::back_inserter(out));
  return out.size() == own.size() ? std::vector<uint32_t>() : out;
}

}  // namespace muster::facts
