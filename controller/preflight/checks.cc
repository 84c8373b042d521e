#include "controller/preflight/checks.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <map>

#include "common/suggest.h"
#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

struct NamedCheck {
  const char* name;
  void (*run)(const Nodes&, const Options&, Findings&);
};

constexpr NamedCheck kChecks[] = {
    {"machine", CheckMachine},
    {"version", CheckVersion},
    {"certificate", CheckCertificate},
    {"network", CheckNetwork},
    {"interface", CheckInterface},
    {"port", CheckPort},
    {"devices", CheckDevices},
    {"device_memory", CheckDeviceMemory},
    {"device_health", CheckDeviceHealth},
    {"driver", CheckDriver},
    {"stage", CheckStage},
    {"working_dir", CheckWorkingDir},
    {"program", CheckProgram},
    {"python", CheckPython},
    {"files", CheckFiles},
    {"disk", CheckDisk},
    {"shm", CheckShm},
    {"limits", CheckLimits},
    {"rdma", CheckRdma},
    {"clock", CheckClock},
};

}  // namespace

ClockOffset OffsetOf(int64_t sent_ns, int64_t received_ns, int64_t answered_ns, int64_t back_ns) {
  const int64_t there = received_ns - sent_ns;
  const int64_t back = answered_ns - back_ns;
  const int64_t under_way = (back_ns - sent_ns) - (answered_ns - received_ns);
  return {there / 2 + back / 2, under_way / 2};
}

std::string Majority(const std::vector<std::string>& values) {
  std::map<std::string, size_t> counts;
  size_t total = 0;
  for (const auto& value : values) {
    if (value.empty()) continue;
    ++counts[value];
    ++total;
  }
  for (const auto& [value, count] : counts) {
    if (2 * count > total) return value;
  }
  return "";
}

std::string Bytes(uint64_t bytes) {
  if (bytes >= uint64_t{1} << 30)
    return absl::StrFormat("%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return absl::StrCat(bytes >> 20, " MiB");
}

const std::vector<std::string>& CheckNames() {
  static const auto* const names = [] {
    auto* all = new std::vector<std::string>;
    for (const auto& check : kChecks) all->emplace_back(check.name);
    return all;
  }();
  return *names;
}

absl::Status ValidateSkip(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (std::find(CheckNames().begin(), CheckNames().end(), name) != CheckNames().end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("skip_checks: there is no check '", name, "'", DidYouMean(name, CheckNames()),
                     " (checks: ", absl::StrJoin(CheckNames(), ", "), ")"));
  }
  return absl::OkStatus();
}

std::vector<Finding> Check(const std::vector<NodeFacts>& nodes, const Options& options) {
  Findings out;
  CheckConnect(nodes, options, out);
  for (const auto& check : kChecks) {
    if (!options.skip.contains(check.name)) check.run(nodes, options, out);
  }
  // Command lines of other programs may hold anything; a finding is one line.
  for (auto& finding : out) {
    std::replace_if(
        finding.value.begin(), finding.value.end(), [](char c) { return c == '\n' || c == '\r'; },
        ' ');
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
  return out;
}

bool HasError(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; });
}

}  // namespace muster::preflight
