#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

#include "worker/facts/devices.h"

namespace muster::facts {
namespace {

constexpr uint64_t kMiB = 1 << 20;
// More than any node has: a tool that says more than this says nonsense.
constexpr size_t kMostDevices = 256;
constexpr int kMostHolders = 64;

std::string Trim(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Decimal, or hexadecimal after 0x.
std::optional<uint64_t> Number(const std::string& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text.c_str(), &end, hex ? 16 : 10);
  if (text.empty() || errno == ERANGE || *end != '\0' ||
      !std::isxdigit(static_cast<unsigned char>(text[0])))
    return std::nullopt;
  return value;
}

// A device's or a process's.
std::optional<uint32_t> Number32(const std::string& text) {
  const auto number = Number(text);
  if (!number || *number > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return static_cast<uint32_t>(*number);
}

uint64_t FromMiB(uint64_t mib) {
  return std::min(mib, std::numeric_limits<uint64_t>::max() / kMiB) * kMiB;
}

// "[N/A]", "N/A", "[Not Supported]", "ERR!", "[Unknown Error]": nothing known.
std::string Known(const std::string& text) {
  const bool none = text.starts_with("[") || text == "N/A" || text == "ERR!" ||
                    text == "Unknown Error" || text == "Insufficient Permissions";
  return none ? "" : text;
}

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) fields.push_back(Trim(field));
  return fields;
}

void SetField(const std::string& name, const std::string& value, v1::Device& device) {
  if (name == "uuid") device.set_uuid(value);
  if (name == "pci.bus_id") device.set_bus_id(value);
  if (name == "name") device.set_name(value);
  if (name == "driver_version") device.set_driver(value);
  if (name == "mig.mode.current") device.set_mig(value == "Enabled");
  const auto number = Number(value);
  if (!number) return;
  if (name == "memory.total") device.set_memory_total_bytes(FromMiB(*number));
  if (name == "memory.used") device.set_memory_used_bytes(FromMiB(*number));
  if (name == "ecc.errors.uncorrected.volatile.total") device.set_ecc_uncorrected(*number);
  if (name == "clocks_event_reasons.active" || name == "clocks_throttle_reasons.active")
    device.set_throttle_reasons(*number);
}

}  // namespace

std::vector<v1::Device> ParseGpus(const std::string& csv, const std::vector<std::string>& fields,
                                  const std::string& kind) {
  std::vector<v1::Device> devices;
  std::istringstream lines(csv);
  for (std::string line; devices.size() < kMostDevices && std::getline(lines, line);) {
    const std::vector<std::string> values = Split(line);
    if (values.size() != fields.size()) continue;
    const auto index = Number32(values[0]);
    if (!index) continue;
    v1::Device& device = devices.emplace_back();
    device.set_index(*index);
    device.set_kind(kind);
    for (size_t i = 1; i < fields.size(); ++i) SetField(fields[i], Known(values[i]), device);
    // A device that fell off the bus is listed without its name.
    if (device.name().empty()) devices.pop_back();
  }
  return devices;
}

void AddHolders(const std::string& csv, std::vector<v1::Device>& devices) {
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> values = Split(line);
    if (values.size() < 4) continue;  // "No running processes found"
    const auto pid = Number32(values[1]);
    const auto device = std::find_if(devices.begin(), devices.end(), [&](const v1::Device& d) {
      return !d.uuid().empty() && d.uuid() == values[0];
    });
    if (!pid || device == devices.end() || device->holders_size() == kMostHolders) continue;
    v1::DeviceHolder& holder = *device->add_holders();
    holder.set_pid(*pid);
    // A process name may hold commas.
    std::string command = values[2];
    for (size_t i = 3; i + 1 < values.size(); ++i) command += ", " + values[i];
    holder.set_command(Known(command));
    holder.set_memory_bytes(FromMiB(Number(values.back()).value_or(0)));
  }
}

std::string UnknownField(const std::string& text) {
  const size_t begin = text.find("Field \"");
  if (begin == std::string::npos) return "";
  const size_t end = text.find("\" is not a valid field", begin);
  return end == std::string::npos ? "" : text.substr(begin + 7, end - begin - 7);
}

std::string ToolError(const ToolOutput& output) {
  if (!output.failure.empty()) return output.failure;
  if (output.exit_code == 0) return "";
  // "No devices were found" is an answer, exit code 6.
  const std::string text = Trim(output.out + "\n" + output.err);
  if (text.find("No devices were found") != std::string::npos) return "";
  std::string line = text;
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.empty() ? "it ends with " + std::to_string(output.exit_code) : line.substr(0, 300);
}

std::string NonsenseError(const ToolOutput& output, const std::vector<v1::Device>& devices) {
  const std::string text = Trim(output.out);
  if (output.exit_code != 0 || !devices.empty() || text.empty() ||
      text.find("No devices were found") != std::string::npos) {
    return "";
  }
  return "its answer can't be read: '" + text.substr(0, std::min<size_t>(text.find('\n'), 200)) +
         "'";
}

// Rows of two lines or more; the first one has the number, the name and "1MiB(16384MiB)".
std::vector<v1::Device> ParseMusaTable(const std::string& text) {
  std::vector<v1::Device> devices;
  std::string driver;
  std::istringstream lines(text);
  for (std::string line; devices.size() < kMostDevices && std::getline(lines, line);) {
    if (const size_t at = line.find("Driver Version:"); at != std::string::npos)
      driver = Trim(line.substr(at + 15));
    if (line.find("Processes:") != std::string::npos) break;
    const size_t bar = line.find('|');
    const size_t memory = line.find("MiB(");
    if (bar == std::string::npos || memory == std::string::npos || memory < bar) continue;
    const std::string head = line.substr(0, bar);
    const size_t blank = head.find(' ');
    const auto index = Number32(head.substr(0, blank));
    const size_t number = line.find_last_of(" |", memory) + 1;
    const size_t close = line.find("MiB)", memory);
    if (!index || blank == std::string::npos || close == std::string::npos) continue;
    const auto used = Number(line.substr(number, memory - number));
    const auto total = Number(line.substr(memory + 4, close - memory - 4));
    if (!used || !total) continue;
    v1::Device& device = devices.emplace_back();
    device.set_index(*index);
    device.set_kind("musa");
    device.set_name(Trim(head.substr(blank)));
    device.set_driver(driver);
    device.set_memory_used_bytes(FromMiB(*used));
    device.set_memory_total_bytes(FromMiB(*total));
    const size_t bus_end = line.find('|', bar + 1);
    if (bus_end != std::string::npos)
      device.set_bus_id(Trim(line.substr(bar + 1, bus_end - bar - 1)));
  }
  return devices;
}

}  // namespace muster::facts
