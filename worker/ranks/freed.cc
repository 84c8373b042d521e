#include "worker/ranks/freed.h"

#include <algorithm>
#include <cstdio>
#include <optional>

namespace muster::ranks {
namespace {

// A driver keeps some memory of its own, and not always the same.
constexpr uint64_t kTolerance = uint64_t{256} << 20;

// Memory in use that is nobody's; nothing when a holder's share is not known.
std::optional<uint64_t> Unaccounted(const v1::Device& device) {
  uint64_t held = 0;
  for (const v1::DeviceHolder& holder : device.holders()) {
    if (holder.memory_bytes() == 0) return std::nullopt;
    held += holder.memory_bytes();
  }
  return device.memory_used_bytes() - std::min(held, device.memory_used_bytes());
}

bool SameDevice(const v1::Device& a, const v1::Device& b) {
  return a.uuid().empty() || b.uuid().empty() ? a.index() == b.index() : a.uuid() == b.uuid();
}

std::string Gib(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                static_cast<double>(bytes) / static_cast<double>(uint64_t{1} << 30));
  return text;
}

}  // namespace

std::vector<std::string> HeldDevices(const Devices& before, const Devices& now) {
  std::vector<std::string> held;
  for (const v1::Device& device : now) {
    const auto old = std::find_if(before.begin(), before.end(), [&](const v1::Device& other) {
      return SameDevice(device, other);
    });
    if (old == before.end()) continue;
    const auto used = Unaccounted(device);
    const auto baseline = Unaccounted(*old);
    if (!used || !baseline || *used <= *baseline + kTolerance) continue;
    held.push_back("device " + std::to_string(device.index()) + ": " + Gib(*used) +
                   " in use by no process that can be seen, " + Gib(*baseline) +
                   " before the attempt");
  }
  return held;
}

}  // namespace muster::ranks
