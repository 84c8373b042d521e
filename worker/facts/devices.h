#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::facts {

struct DeviceFact {
  uint32_t index = 0;
  std::string kind;  // "cuda", "fake"
  std::string name;
  uint64_t memory_total_bytes = 0;
  uint64_t memory_used_bytes = 0;

  friend bool operator==(const DeviceFact&, const DeviceFact&) = default;
};

// Arguments of nvidia-smi whose output ParseNvidiaSmi reads. A program, not a library: the daemon
// is static.
std::vector<std::string> NvidiaSmiCommand();

// One device a line: `0, NVIDIA H200, 143771, 4` (index, name, total and used MiB). Lines of
// another shape are skipped.
std::vector<DeviceFact> ParseNvidiaSmi(const std::string& csv);

// Devices for tests and demos: 80 GiB each, nothing used.
std::vector<DeviceFact> FakeDevices(uint32_t count);

}  // namespace muster::facts
