#include "controller/plan/device_memory.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <fmt/format.h>

#include <array>
#include <vector>

namespace muster::plan {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;

struct Model {
  std::string_view name;
  double mib;  // nvidia-smi's memory.total
};
// Sizes that differ by variant are not here: write them into the type (A100-40G).
constexpr std::array kModels = {
    Model{"H100", 81559},  Model{"H200", 143771}, Model{"H800", 81559}, Model{"H20", 97871},
    Model{"B200", 183359}, Model{"A100", 81920},  Model{"A800", 81920}, Model{"L40S", 46068},
};

// "80GB", "80G", "141GiB".
std::optional<double> SizeWord(std::string_view word) {
  const size_t digits = word.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const std::string unit = absl::AsciiStrToLower(std::string(word.substr(digits)));
  if (unit != "g" && unit != "gb" && unit != "gib") return std::nullopt;
  double number = 0;
  if (!absl::SimpleAtod(std::string(word.substr(0, digits)), &number)) return std::nullopt;
  return number * kGiB;
}

}  // namespace

absl::StatusOr<double> ParseMemorySize(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string unit = absl::AsciiStrToLower(std::string(text.substr(digits)));
  double number = 0;
  double scale = 0;
  if (unit == "g" || unit == "gb" || unit == "gib") scale = kGiB;
  if (unit == "m" || unit == "mb" || unit == "mib") scale = kMiB;
  if (scale == 0 || !absl::SimpleAtod(std::string(text.substr(0, digits)), &number) ||
      number * scale < kMiB || number * scale > 1024 * kGiB) {
    return absl::InvalidArgumentError(
        fmt::format("'{}' is not a size such as 139GiB or 81559MiB", text));
  }
  return number * scale;
}

std::optional<double> MemoryOfType(std::string_view type) {
  const std::vector<std::string> words =
      absl::StrSplit(std::string(type), absl::ByAnyChar("-_+."), absl::SkipEmpty());
  for (const std::string& word : words) {
    if (const auto size = SizeWord(word)) return size;
  }
  for (const std::string& word : words) {
    for (const Model& model : kModels) {
      if (absl::AsciiStrToUpper(word) == model.name) return model.mib * kMiB;
    }
  }
  return std::nullopt;
}

std::optional<DeviceMemory> MemoryOfHosts(const v1::Plan& plan) {
  std::optional<DeviceMemory> out;
  for (const v1::NodePlan& node : plan.nodes()) {
    const auto bytes = MemoryOfType(node.host().type());
    if (!bytes || (out && out->bytes <= *bytes)) continue;
    out =
        DeviceMemory{*bytes, fmt::format("type={} of {}", node.host().type(), node.host().host())};
  }
  return out;
}

}  // namespace muster::plan
