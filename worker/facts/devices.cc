#include "worker/facts/devices.h"

#include <cstdlib>
#include <optional>
#include <sstream>

namespace muster::facts {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<uint64_t> Number(const std::string& text) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] == '-') return std::nullopt;
  return value;
}

}  // namespace

std::vector<std::string> NvidiaSmiCommand() {
  return {"nvidia-smi", "--query-gpu=index,name,memory.total,memory.used",
          "--format=csv,noheader,nounits"};
}

std::vector<DeviceFact> ParseNvidiaSmi(const std::string& csv) {
  std::vector<DeviceFact> devices;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(Trim(field));
    if (fields.size() != 4) continue;
    const auto index = Number(fields[0]);
    const auto total = Number(fields[2]);
    // "[N/A]" on devices that share the host's memory.
    const auto used = Number(fields[3]);
    if (!index || fields[1].empty()) continue;
    devices.push_back({static_cast<uint32_t>(*index), "cuda", fields[1], total.value_or(0) * kMiB,
                       used.value_or(0) * kMiB});
  }
  return devices;
}

std::vector<DeviceFact> FakeDevices(uint32_t count) {
  std::vector<DeviceFact> devices;
  for (uint32_t i = 0; i < count; ++i)
    devices.push_back({i, "fake", "fake device", 80ull << 30, 0});
  return devices;
}

}  // namespace muster::facts
