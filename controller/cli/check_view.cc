#include "controller/cli/check_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"
#include "controller/preflight/fold.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

std::vector<preflight::Folded> FoldedFindings(const v1::CheckResponse& response) {
  std::vector<preflight::Finding> findings;
  for (const v1::Finding& finding : response.findings()) {
    const auto severity = finding.severity() == "note"      ? preflight::Severity::kNote
                          : finding.severity() == "warning" ? preflight::Severity::kWarning
                                                            : preflight::Severity::kError;
    findings.push_back({finding.check(), severity, finding.host(), finding.value(),
                        finding.majority(), finding.fix()});
  }
  return preflight::Fold(findings);
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
  for (const preflight::Folded& folded : FoldedFindings(response)) {
    const std::string severity = preflight::SeverityName(folded.severity);
    out += fmt::format("{} {}: {}: {}", Coloured(style, severity, severity), folded.check,
                       style.Bold(folded.hosts.empty() ? "all hosts" : folded.hosts),
                       EscapeForDisplay(folded.value));
    if (!folded.majority.empty())
      out += fmt::format(" (most hosts: {})", EscapeForDisplay(folded.majority));
    out += "\n";
    for (const std::string& fix : folded.fixes)
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
