#include "controller/cli/check_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostHosts = 8;
constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// Hosts that share a finding; the fix of each, most of which name it.
struct Group {
  const v1::Finding* finding = nullptr;
  std::vector<std::string> hosts;
  std::vector<std::string> fixes;
};

std::vector<Group> GroupsOf(const v1::CheckResponse& response) {
  std::vector<Group> groups;
  for (const v1::Finding& finding : response.findings()) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.finding->check() == finding.check() &&
             group.finding->severity() == finding.severity() &&
             group.finding->value() == finding.value() &&
             group.finding->majority() == finding.majority() && !finding.host().empty();
    });
    Group& group = same == groups.end() ? groups.emplace_back() : *same;
    if (group.finding == nullptr) group.finding = &finding;
    group.hosts.push_back(finding.host());
    group.fixes.push_back(finding.fix());
  }
  return groups;
}

std::string HostList(const std::vector<std::string>& hosts) {
  if (hosts.front().empty()) return "all hosts";
  std::string text;
  for (size_t i = 0; i < std::min(hosts.size(), kMostHosts); ++i)
    text += (i == 0 ? "" : ", ") + hosts[i];
  if (hosts.size() > kMostHosts) text += fmt::format(" and {} more", hosts.size() - kMostHosts);
  return text;
}

bool InHostName(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_' ||
         c == ':';
}

// The text with `hosts` where the host stands as a word of its own; as --exclude takes them after
// that flag.
std::string WithHosts(const std::string& text, const std::string& host, const std::string& hosts,
                      const std::string& excluded) {
  constexpr std::string_view kFlag = "--exclude ";
  std::string out;
  size_t at = 0;
  while (true) {
    const size_t found = host.empty() ? std::string::npos : text.find(host, at);
    if (found == std::string::npos) return out + text.substr(at);
    const size_t end = found + host.size();
    // A name may be followed by punctuation: "on node1: ...", "node1, ...".
    const bool colon = end < text.size() && text[end] == ':' &&
                       (end + 1 == text.size() || !InHostName(text[end + 1]));
    const bool whole = (found == 0 || !InHostName(text[found - 1])) &&
                       (end == text.size() || colon || !InHostName(text[end]));
    out += text.substr(at, found - at);
    out += !whole ? host : out.ends_with(kFlag) ? excluded : hosts;
    at = end;
  }
}

// One fix for all hosts of the group where it is the same but for the host, else one a host.
std::vector<std::string> FixesOf(const Group& group) {
  const std::string& first = group.hosts.front();
  const std::string& fix = group.fixes.front();
  std::string excluded;
  bool alike = true;
  for (size_t i = 0; i < group.hosts.size(); ++i) {
    const std::string& host = group.hosts[i];
    excluded += (i == 0 ? "" : "@") + host;
    alike = alike && group.fixes[i] == WithHosts(fix, first, host, host);
  }
  if (!alike) return group.fixes;
  if (fix.empty()) return {};
  if (group.hosts.size() == 1) return {fix};
  return {WithHosts(fix, first, HostList(group.hosts), excluded)};
}

std::string Coloured(const Style& style, const std::string& severity, const std::string& text) {
  return severity == "error" ? style.Red(text) : severity == "warning" ? style.Yellow(text) : text;
}

std::string Or(const std::string& text) {
  return text.empty() ? "-" : EscapeForDisplay(text);
}

std::string Limit(uint64_t value, uint64_t unit, const char* name) {
  return value == kUnlimited ? "unlimited" : fmt::format("{}{}", value / unit, name);
}

std::string Devices(const v1::ProbeResult& result) {
  if (result.devices().empty()) return "-";
  return fmt::format("{} x {}", result.devices_size(), result.devices(0).name());
}

std::string Clock(const v1::NodeCheck& node) {
  if (!node.has_clock()) return "-";
  return fmt::format("{:+.1f} ms +-{:.1f}", static_cast<double>(node.clock_offset_ns()) / 1e6,
                     static_cast<double>(node.clock_uncertainty_ns()) / 1e6);
}

std::string Shm(const v1::ProbeResult& result) {
  return result.folders_size() < 2
             ? "-"
             : fmt::format("{:.1f} GiB",
                           static_cast<double>(result.folders(1).total_bytes()) / (1 << 30));
}

Json FindingJson(const v1::Finding& finding) {
  return {{"check", finding.check()}, {"severity", finding.severity()}, {"host", finding.host()},
          {"value", finding.value()}, {"majority", finding.majority()}, {"fix", finding.fix()}};
}

Json DeviceJson(const v1::Device& device) {
  Json holders = Json::array();
  for (const v1::DeviceHolder& holder : device.holders()) {
    holders.push_back({{"pid", holder.pid()},
                       {"user", holder.user()},
                       {"command", holder.command()},
                       {"memory_bytes", holder.memory_bytes()}});
  }
  return {{"index", device.index()},
          {"kind", device.kind()},
          {"name", device.name()},
          {"driver", device.driver()},
          {"memory_total_bytes", device.memory_total_bytes()},
          {"memory_used_bytes", device.memory_used_bytes()},
          {"holders", holders}};
}

Json NodeJson(const v1::NodeCheck& node) {
  const v1::ProbeResult& result = node.result();
  Json out = {{"host", node.host()}, {"answered", node.has_result()}};
  if (!node.has_result()) return out;
  Json devices = Json::array();
  for (const v1::Device& device : result.devices()) devices.push_back(DeviceJson(device));
  out["devices"] = devices;
  out["interface"] = result.network().iface();
  out["address"] = result.network().address();
  out["port"] = result.port();
  out["program"] = result.program_path();
  out["program_sha256"] = result.program().sum();
  out["python"] = result.python().version();
  out["torch"] = result.python().torch();
  out["nccl"] = result.python().nccl();
  const auto limit = [](uint64_t value) { return value == kUnlimited ? Json() : Json(value); };
  out["memlock_bytes"] = limit(result.memlock_bytes());  // null: unlimited
  out["nofile"] = limit(result.nofile());
  out["disk_free_bytes"] = result.disk_free_bytes();
  if (node.has_clock()) {
    out["clock_offset_ms"] = static_cast<double>(node.clock_offset_ns()) / 1e6;
    out["clock_uncertainty_ms"] = static_cast<double>(node.clock_uncertainty_ns()) / 1e6;
  }
  return out;
}

}  // namespace

size_t CountFindings(const v1::CheckResponse& response, const std::string& severity) {
  return static_cast<size_t>(
      std::count_if(response.findings().begin(), response.findings().end(),
                    [&](const v1::Finding& f) { return f.severity() == severity; }));
}

int CheckExitCode(const v1::CheckResponse& response) {
  return CountFindings(response, "error") > 0 ? kExitPreflight : kExitOk;
}

std::string CheckText(const v1::CheckResponse& response, const Style& style) {
  std::string counts;
  for (const char* severity : {"error", "warning", "note"}) {
    const size_t count = CountFindings(response, severity);
    if (count == 0) continue;
    counts += (counts.empty() ? "" : ", ") +
              Coloured(style, severity, Count(static_cast<uint64_t>(count), severity));
  }
  std::string out = fmt::format("{} checked in {:.1f} s: {}\n",
                                Count(static_cast<uint64_t>(response.nodes_size()), "host"),
                                static_cast<double>(response.duration_ns()) / 1e9,
                                counts.empty() ? style.Green("nothing to mend") : counts);
  for (const Group& group : GroupsOf(response)) {
    const v1::Finding& finding = *group.finding;
    out += fmt::format("{} {}: {}: {}", Coloured(style, finding.severity(), finding.severity()),
                       finding.check(), style.Bold(HostList(group.hosts)),
                       EscapeForDisplay(finding.value()));
    if (!finding.majority().empty())
      out += fmt::format(" (most hosts: {})", EscapeForDisplay(finding.majority()));
    out += "\n";
    for (const std::string& fix : FixesOf(group))
      out += fmt::format("    fix: {}\n", EscapeForDisplay(fix));
  }
  return out;
}

std::string CheckTable(const v1::CheckResponse& response, const Style& style) {
  Table table({"HOST", "DEVICES", "DRIVER", "IFACE", "ADDRESS", "CLOCK", "MEMLOCK", "NOFILE", "SHM",
               "PYTHON", "TORCH"});
  for (const v1::NodeCheck& node : response.nodes()) {
    const v1::ProbeResult& result = node.result();
    if (!node.has_result()) {
      table.Add({node.host(), style.Red("no answer"), "-", "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const std::string driver = result.devices().empty() ? "" : result.devices(0).driver();
    table.Add({node.host(), Devices(result), Or(driver), Or(result.network().iface()),
               Or(result.network().address()), Clock(node),
               Limit(result.memlock_bytes(), 1 << 20, " MiB"), Limit(result.nofile(), 1, ""),
               Shm(result), Or(result.python().version()), Or(result.python().torch())});
  }
  return table.Render(style);
}

std::string CheckJson(const v1::CheckResponse& response) {
  const int code = CheckExitCode(response);
  Json findings = Json::array();
  for (const v1::Finding& finding : response.findings()) findings.push_back(FindingJson(finding));
  Json nodes = Json::array();
  for (const v1::NodeCheck& node : response.nodes()) nodes.push_back(NodeJson(node));
  const Json out = {{"cause", code == kExitOk ? "ok" : "preflight_failed"},
                    {"code", code},
                    {"hosts", response.nodes_size()},
                    {"seconds", static_cast<double>(response.duration_ns()) / 1e9},
                    {"errors", CountFindings(response, "error")},
                    {"warnings", CountFindings(response, "warning")},
                    {"notes", CountFindings(response, "note")},
                    {"findings", findings},
                    {"nodes", nodes}};
  return out.dump();
}

std::string LastCheck(const v1::Node& node, int64_t now_ns) {
  if (!node.has_last_check()) return "-";
  const v1::NodeCheck& check = node.last_check();
  v1::CheckResponse response;
  *response.mutable_findings() = check.findings();
  const size_t errors = CountFindings(response, "error");
  const size_t warnings = CountFindings(response, "warning");
  std::string verdict = "ok";
  if (warnings > 0) verdict = Count(warnings, "warning");
  if (errors > 0) verdict = Count(errors, "error");
  return fmt::format("{} ago: {}", FormatDuration(now_ns - check.time_ns()), verdict);
}

}  // namespace muster::cli
