// What `muster stage` shows. Pure.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "controller/cli/exit_code.h"
#include "controller/cli/stage_run.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1 << 20;

std::string Size(uint64_t bytes) {
  if (bytes < 10 << 20) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / kMiB);
  return fmt::format("{:.0f} MiB", static_cast<double>(bytes) / kMiB);
}

const char* StateWord(v1::StageState state) {
  switch (state) {
    case v1::STAGE_STATE_CONNECTING:
      return "connecting";
    case v1::STAGE_STATE_READING:
      return "reading";
    case v1::STAGE_STATE_FETCHING:
      return "fetching";
    case v1::STAGE_STATE_VERIFYING:
      return "verifying";
    case v1::STAGE_STATE_DONE:
      return "done";
    case v1::STAGE_STATE_FAILED:
      return "failed";
    default:
      return "unknown";
  }
}

uint64_t Here(const v1::StageStatus& status) {
  return status.bytes_had() + status.bytes_fetched();
}

int Percent(const v1::StageResponse& news, const v1::StageStatus& status) {
  if (status.state() == v1::STAGE_STATE_DONE) return 100;
  if (news.bytes() == 0) return 0;
  return static_cast<int>(std::min<uint64_t>(100 * Here(status) / news.bytes(), 100));
}

bool IsGap(const v1::StageRequest& request, const v1::StageStatus& status) {
  return request.dry_run() && (status.bytes_missing() > 0 || status.num_damaged() > 0);
}

size_t CountState(const v1::StageResponse& end, v1::StageState state) {
  return static_cast<size_t>(
      std::count_if(end.hosts().begin(), end.hosts().end(),
                    [&](const v1::StageHost& host) { return host.status().state() == state; }));
}

std::string Headline(const v1::StageRequest& request, const v1::StageResponse& end) {
  const size_t done = CountState(end, v1::STAGE_STATE_DONE);
  const double seconds = static_cast<double>(end.duration_ns()) / 1e9;
  const std::string hosts = fmt::format("{} of {} hosts", done, end.hosts_size());
  if (end.content_id().empty()) return "pruned " + hosts;
  const std::string tree = fmt::format("{} ({} files, {})", end.content_id().substr(0, 12),
                                       end.files(), Size(end.bytes()));
  if (request.dry_run()) return fmt::format("looked for {} on {}", tree, hosts);
  uint64_t moved = 0;
  for (const v1::StageHost& host : end.hosts()) moved += host.status().bytes_fetched();
  return fmt::format("staged {} on {} in {:.1f} s: {} arrived, the controller sent {}", tree, hosts,
                     seconds, Size(moved), Size(end.bytes_sent()));
}

// Remarks about one host.
std::vector<std::string> HostLines(const v1::StageRequest& request, const v1::StageResponse& end,
                                   const v1::StageHost& host, const Style& style) {
  const v1::StageStatus& status = host.status();
  std::vector<std::string> lines;
  const auto add = [&](const std::string& text) { lines.push_back(host.host() + ": " + text); };
  if (status.state() == v1::STAGE_STATE_FAILED) add(style.Red("failed: ") + status.error());
  for (const std::string& file : status.damaged()) {
    add(style.Yellow(request.dry_run() || status.state() == v1::STAGE_STATE_FAILED ? "damaged: "
                                                                                   : "mended: ") +
        file);
  }
  if (static_cast<int>(status.num_damaged()) > status.damaged_size())
    add(fmt::format("... and {} more",
                    static_cast<int>(status.num_damaged()) - status.damaged_size()));
  if (request.dry_run() && status.bytes_missing() > 0 && status.state() == v1::STAGE_STATE_DONE)
    add(fmt::format("{} of {} are missing", Size(status.bytes_missing()), Size(end.bytes())));
  if (host.through_controller() && status.bytes_fetched() > 0)
    add("fed by the controller: it reaches no other host");
  for (const std::string& id : status.pruned()) add("removed " + id.substr(0, 12));
  if (request.keep() == 1 || end.content_id().empty()) {
    for (const std::string& why : status.kept()) add("kept " + why);
  }
  return lines;
}

}  // namespace

std::string StageProgressLine(const v1::StageResponse& news, double megabytes_per_second) {
  if (news.content_id().empty()) return "staging: pruning";
  uint64_t here = 0;
  const v1::StageHost* slowest = nullptr;
  for (const v1::StageHost& host : news.hosts()) {
    here += Here(host.status());
    if (host.status().state() >= v1::STAGE_STATE_DONE) continue;
    if (slowest == nullptr || Here(host.status()) < Here(slowest->status())) slowest = &host;
  }
  const uint64_t all = news.bytes() * static_cast<uint64_t>(news.hosts_size());
  std::string line = fmt::format("staging {}: {} %, {}/{} hosts", Size(news.bytes()),
                                 all == 0 ? 0 : 100 * here / all,
                                 CountState(news, v1::STAGE_STATE_DONE), news.hosts_size());
  if (const size_t failed = CountState(news, v1::STAGE_STATE_FAILED); failed > 0)
    line += fmt::format(" ({} failed)", failed);
  if (megabytes_per_second > 0) line += fmt::format(", {:.0f} MB/s", megabytes_per_second);
  if (slowest != nullptr && news.hosts_size() > 1) {
    line += fmt::format(", slowest {} {} {} %", slowest->host(),
                        StateWord(slowest->status().state()), Percent(news, slowest->status()));
  }
  return line;
}

std::string StageText(const v1::StageRequest& request, const v1::StageResponse& end,
                      const Style& style) {
  std::string text = Headline(request, end) + "\n";
  for (const v1::StageHost& host : end.hosts()) {
    for (const std::string& line : HostLines(request, end, host, style)) text += "  " + line + "\n";
  }
  return text;
}

std::string StageJson(const v1::StageRequest& request, const v1::StageResponse& end) {
  Json hosts = Json::array();
  for (const v1::StageHost& host : end.hosts()) {
    const v1::StageStatus& status = host.status();
    Json one = {{"host", host.host()},
                {"state", StateWord(status.state())},
                {"path", status.path()},
                {"bytes_had", status.bytes_had()},
                {"bytes_fetched", status.bytes_fetched()},
                {"bytes_given", status.bytes_given()},
                {"bytes_missing", status.bytes_missing()},
                {"source", host.source()},
                {"through_controller", host.through_controller()},
                {"damaged", status.damaged()},
                {"num_damaged", status.num_damaged()},
                {"pruned", status.pruned()},
                {"kept", status.kept()}};
    if (!status.error().empty()) one["error"] = status.error();
    hosts.push_back(std::move(one));
  }
  const int code = StageExitCode(request, end);
  const Json out = {{"cause", code == kExitOk          ? "ok"
                              : code == kExitPreflight ? "preflight_failed"
                                                       : "launch_failed"},
                    {"code", code},
                    {"content_id", end.content_id()},
                    {"files", end.files()},
                    {"bytes", end.bytes()},
                    {"ignored", end.ignored()},
                    {"bytes_sent", end.bytes_sent()},
                    {"seconds", static_cast<double>(end.duration_ns()) / 1e9},
                    {"hosts", hosts}};
  return out.dump();
}

int StageExitCode(const v1::StageRequest& request, const v1::StageResponse& end) {
  if (CountState(end, v1::STAGE_STATE_DONE) != static_cast<size_t>(end.hosts_size()))
    return kExitLaunch;
  const bool gap =
      std::any_of(end.hosts().begin(), end.hosts().end(),
                  [&](const v1::StageHost& host) { return IsGap(request, host.status()); });
  return gap ? kExitPreflight : kExitOk;
}

}  // namespace muster::cli
