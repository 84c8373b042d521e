#include "worker/facts/port_words.h"

#include <algorithm>
#include <cstdlib>

#include "worker/facts/port.h"

namespace muster::facts {
namespace {

constexpr size_t kMostPorts = 16;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool LineSaysInUse(std::string_view line) {
  for (const std::string_view words : {"ddress already in use", "EADDRINUSE", "ort already in use",
                                       "ddress in use", "ort is already in use"}) {
    if (line.find(words) != std::string_view::npos) return true;
  }
  return false;
}

void AddNumbers(std::string_view line, std::vector<uint32_t>& ports) {
  for (size_t at = 0; at < line.size();) {
    if (!IsDigit(line[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < line.size() && IsDigit(line[end])) ++end;
    // Not a part of a word, of an address or of a fraction; errno 98 is no port.
    const bool alone = (at == 0 || (line[at - 1] != '.' && !IsLetter(line[at - 1]))) &&
                       (end == line.size() ||
                        (line[end] != '.' || end + 1 == line.size() || !IsDigit(line[end + 1])));
    const std::string digits(line.substr(at, std::min<size_t>(end - at, 6)));
    const unsigned long number = std::strtoul(digits.c_str(), nullptr, 10);
    const bool is_port = alone && number > 0 && number <= 65535 && number != 98;
    const auto port = static_cast<uint32_t>(number);
    if (is_port && ports.size() < kMostPorts &&
        std::find(ports.begin(), ports.end(), port) == ports.end()) {
      ports.push_back(port);
    }
    at = end;
  }
}

}  // namespace

bool SaysPortInUse(std::string_view words) {
  return LineSaysInUse(words);
}

std::vector<uint32_t> PortsInUse(std::string_view words) {
  std::vector<uint32_t> ports;
  while (!words.empty()) {
    const size_t end = std::min(words.find('\n'), words.size());
    if (LineSaysInUse(words.substr(0, end))) AddNumbers(words.substr(0, end), ports);
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return ports;
}

std::vector<std::string> DescribePortsInUse(std::string_view words, const std::string& address,
                                            uint32_t rendezvous_port, const ProcReader& proc) {
  std::vector<std::string> holders;
  if (!SaysPortInUse(words)) return holders;
  std::vector<uint32_t> ports = PortsInUse(words);
  if (rendezvous_port != 0 &&
      std::find(ports.begin(), ports.end(), rendezvous_port) == ports.end()) {
    ports.insert(ports.begin(), rendezvous_port);
  }
  for (const uint32_t port : ports) {
    std::string text = DescribePortInUse(port == rendezvous_port ? address : "", port, proc);
    if (text.find(" by ") != std::string::npos) holders.push_back(std::move(text));
  }
  return holders;
}

}  // namespace muster::facts
