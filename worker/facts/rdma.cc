#include "worker/facts/rdma.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace muster::facts {
namespace {

namespace fs = std::filesystem;

std::string FirstLine(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::string> Names(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<v1::RdmaPort> RdmaPorts(const std::string& root) {
  std::vector<v1::RdmaPort> ports;
  for (const std::string& device : Names(root)) {
    const fs::path folder = fs::path(root) / device / "ports";
    for (const std::string& number : Names(folder)) {
      v1::RdmaPort& port = ports.emplace_back();
      port.set_device(device);
      port.set_port(static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 10)));
      // "4: ACTIVE"
      const std::string state = FirstLine(folder / number / "state");
      const size_t colon = state.find(": ");
      port.set_state(colon == std::string::npos ? state : state.substr(colon + 2));
      port.set_link_layer(FirstLine(folder / number / "link_layer"));
      port.set_rate(FirstLine(folder / number / "rate"));
    }
  }
  return ports;
}

}  // namespace muster::facts
