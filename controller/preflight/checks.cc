#include "controller/preflight/checks.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "common/suggest.h"

namespace muster::preflight {
namespace {

constexpr uint64_t kLowDisk = uint64_t{1} << 30;
constexpr int64_t kMaxClockOffsetNs = 2'000'000'000;

using Nodes = std::vector<NodeFacts>;
using Findings = std::vector<Finding>;

// The value that most nodes have, or "" when no value has more than half of them. `values` skips
// empty ones.
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

// Adds a finding for every node whose value differs from the others': against the majority, or,
// where there is none, against the head.
template <typename Value>
void CompareAll(const Nodes& nodes, const std::string& check, Severity severity,
                const std::string& fix, Value value, Findings& out) {
  std::vector<std::string> values;
  values.reserve(nodes.size());
  for (const auto& node : nodes) values.push_back(value(node));
  std::string majority = Majority(values);
  if (majority.empty() && !values.empty()) majority = values.front();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (values[i].empty() || majority.empty() || values[i] == majority) continue;
    out.push_back({check, severity, nodes[i].host, values[i], majority, fix});
  }
}

void CheckMachine(const Nodes& nodes, const Options&, Findings& out) {
  std::map<std::pair<std::string, uint64_t>, std::string> seen;
  for (const auto& node : nodes) {
    // Several workers on loopback addresses of one machine are a wish, not a slip.
    const bool loopback =
        node.host.rfind("127.", 0) == 0 || node.host == "localhost" || node.host == "::1";
    if (loopback || node.hello.boot_id().empty()) continue;
    const auto key = std::make_pair(node.hello.boot_id(), node.hello.net_ns());
    const auto [it, added] = seen.emplace(key, node.host);
    if (added) continue;
    out.push_back(
        {"machine", Severity::kError, node.host,
         absl::StrCat("is the same machine as ", it->second,
                      " (same boot id and network namespace)"),
         "",
         absl::StrCat(
             "remove one of the two lines from the hostfile, and give the other one all slots")});
  }
}

void CheckVersion(const Nodes& nodes, const Options& options, Findings& out) {
  for (const auto& node : nodes) {
    if (options.controller_version.empty() || node.hello.version() == options.controller_version) {
      continue;
    }
    out.push_back({"version", Severity::kWarning, node.host,
                   absl::StrCat("musterd is version ", node.hello.version(), ", the controller is ",
                                options.controller_version),
                   "", absl::StrCat("restart musterd on ", node.host, " from the same build")});
  }
}

void CheckClock(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (!node.clock) continue;
    const int64_t sure = std::llabs(node.clock->offset_ns) - node.clock->uncertainty_ns;
    if (sure <= kMaxClockOffsetNs) continue;
    out.push_back(
        {"clock", Severity::kWarning, node.host,
         absl::StrCat("its clock is ", std::llabs(node.clock->offset_ns) / 1'000'000, " ms ",
                      node.clock->offset_ns > 0 ? "ahead of" : "behind",
                      " the controller's (uncertainty ", node.clock->uncertainty_ns / 1'000'000,
                      " ms)"),
         "", absl::StrCat("start a time service on ", node.host, ": timedatectl set-ntp true")});
  }
}

void CheckWorkingDir(const Nodes& nodes, const Options& options, Findings& out) {
  for (const auto& node : nodes) {
    if (node.probe.working_dir_error().empty()) continue;
    out.push_back({"working_dir", Severity::kError, node.host, node.probe.working_dir_error(), "",
                   absl::StrCat("make ", options.working_dir, " on ", node.host,
                                ", or submit from a folder that every host has")});
  }
}

void CheckProgram(const Nodes& nodes, const Options& options, Findings& out) {
  std::vector<std::string> paths;
  for (const auto& node : nodes) paths.push_back(node.probe.program_path());
  const std::string majority = Majority(paths);
  for (const auto& node : nodes) {
    if (node.probe.program_error().empty()) continue;
    out.push_back({"program", Severity::kError, node.host, node.probe.program_error(), majority,
                   absl::StrCat("install ", options.program, " on ", node.host,
                                ", or give the command with a path that every host has")});
  }
  CompareAll(
      nodes, "program", Severity::kError,
      absl::StrCat("give the path of ", options.program,
                   " that is meant, or make PATH equal on all hosts"),
      [](const NodeFacts& node) { return node.probe.program_path(); }, out);
}

// Workers name the path in the error; a reader must see it once in any case.
std::string FileError(const v1::FileFact& file) {
  return file.error().starts_with(file.path()) ? file.error()
                                               : absl::StrCat(file.path(), ": ", file.error());
}

void CheckFiles(const Nodes& nodes, const Options&, Findings& out) {
  std::map<std::string, std::vector<std::string>> sizes;  // path -> size by node, "" = unreadable
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const auto& file : nodes[i].probe.files()) {
      auto& column = sizes[file.path()];
      column.resize(nodes.size());
      if (file.error().empty()) column[i] = absl::StrCat(file.size(), " bytes");
      if (!file.error().empty()) {
        out.push_back({"files", Severity::kError, nodes[i].host, FileError(file), "",
                       "check the path, and that the file system is mounted there"});
      }
    }
  }
  for (const auto& [path, column] : sizes) {
    const std::string majority = Majority(column);
    const std::string& expected = majority.empty() ? column.front() : majority;
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (column[i].empty() || expected.empty() || column[i] == expected) continue;
      out.push_back({"files", Severity::kError, nodes[i].host, absl::StrCat(path, ": ", column[i]),
                     expected, "copy the same file to every host"});
    }
  }
}

void CheckDevices(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (node.devices.empty() || node.hello.devices().empty()) continue;
    std::set<uint32_t> found;
    for (const auto& device : node.hello.devices()) found.insert(device.index());
    std::vector<uint32_t> missing;
    for (const uint32_t device : node.devices) {
      if (!found.contains(device)) missing.push_back(device);
    }
    if (missing.empty()) continue;
    out.push_back(
        {"devices", Severity::kError, node.host,
         absl::StrCat("the plan uses ", node.devices.size(), " devices, but only ", found.size(),
                      " were found (missing: ", absl::StrJoin(missing, ","), ")"),
         "",
         absl::StrCat("set slots=", found.size(), " for ", node.host,
                      " in the hostfile, or look for the lost device")});
  }
}

void CheckDisk(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    // A worker that cannot tell says 0.
    if (node.probe.disk_free_bytes() == 0 || node.probe.disk_free_bytes() >= kLowDisk) continue;
    out.push_back({"disk", Severity::kWarning, node.host,
                   absl::StrCat("only ", node.probe.disk_free_bytes() >> 20,
                                " MiB are free for logs in ", node.hello.state_dir()),
                   "",
                   absl::StrCat("free some space, or start musterd on ", node.host,
                                " with MUSTER_STATE on a larger disk")});
  }
}

void CheckPort(const Nodes& nodes, const Options&, Findings& out) {
  if (nodes.empty() || nodes.front().probe.port_error().empty()) return;
  out.push_back(
      {"port", Severity::kError, nodes.front().host, nodes.front().probe.port_error(), "",
       "end the program that holds the port, or correct the head's addr= in the hostfile"});
}

struct NamedCheck {
  const char* name;
  void (*run)(const Nodes&, const Options&, Findings&);
};

constexpr NamedCheck kChecks[] = {
    {"machine", CheckMachine},
    {"version", CheckVersion},
    {"clock", CheckClock},
    {"devices", CheckDevices},
    {"working_dir", CheckWorkingDir},
    {"program", CheckProgram},
    {"files", CheckFiles},
    {"disk", CheckDisk},
    {"port", CheckPort},
};

}  // namespace

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
  for (const auto& check : kChecks) {
    if (!options.skip.contains(check.name)) check.run(nodes, options, out);
  }
  return out;
}

bool HasError(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(),
                     [](const Finding& f) { return f.severity == Severity::kError; });
}

}  // namespace muster::preflight
