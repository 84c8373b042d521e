#include "controller/cli/cleanup_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "controller/cli/text.h"
#include "controller/why/node_lines.h"

namespace muster::cli {
namespace {

// Why the host could not look; "" if it could.
std::string Blindness(const v1::CheckResponse& sweep, const v1::NodeCheck& node) {
  if (node.has_result() && node.result().has_leftovers()) return node.result().leftovers().error();
  for (const v1::Finding& finding : sweep.findings()) {
    if (finding.host() == node.host()) return finding.value();
  }
  return node.has_result() ? "its musterd is too old to look" : "it gave no answer";
}

void AddProcesses(std::string_view what,
                  const google::protobuf::RepeatedPtrField<v1::Survivor>& list,
                  std::vector<std::string>* lines) {
  for (const v1::Survivor& process : list) {
    lines->push_back(EscapeForDisplay(fmt::format(
        "  {} {}, attempt {}", what, why::DescribeProcess(process), process.attempt())));
  }
}

nlohmann::ordered_json Values(const google::protobuf::RepeatedPtrField<v1::Survivor>& list) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const v1::Survivor& process : list) {
    out.push_back({{"pid", process.pid()},
                   {"user", ToValidUtf8(process.user())},
                   {"command", ToValidUtf8(process.command())},
                   {"state", process.state()},
                   {"wait_channel", process.wait_channel()},
                   {"attempt", process.attempt()}});
  }
  return out;
}

}  // namespace

bool NothingLeft(const v1::CheckResponse& sweep) {
  return std::all_of(sweep.nodes().begin(), sweep.nodes().end(), [&](const v1::NodeCheck& node) {
    return Blindness(sweep, node).empty() && node.result().leftovers().dead().empty();
  });
}

std::vector<std::string> SweepLines(const v1::CheckResponse& sweep, const Style& style) {
  size_t width = 0;
  for (const v1::NodeCheck& node : sweep.nodes()) width = std::max(width, node.host().size());
  std::vector<std::string> lines;
  for (const v1::NodeCheck& node : sweep.nodes()) {
    const std::string blind = Blindness(sweep, node);
    const v1::LeftoverResult& found = node.result().leftovers();
    const std::string verdict = !blind.empty()         ? style.Red("UNVERIFIED")
                                : found.dead().empty() ? style.Green("clean")
                                                       : style.Red("LEFTOVERS");
    std::string line = fmt::format("{:<{}}  {}", node.host(), width, verdict);
    if (!blind.empty()) line += "  " + EscapeForDisplay(blind);
    if (blind.empty()) {
      line += fmt::format("  {} ended, {} left", found.ended_size(), found.dead_size());
    }
    lines.push_back(std::move(line));
    AddProcesses("ended:", found.ended(), &lines);
    AddProcesses("still there:", found.dead(), &lines);
    AddProcesses("left alone, of another controller or daemon:", found.live(), &lines);
  }
  return lines;
}

std::string SweepJson(const v1::CheckResponse& sweep) {
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  for (const v1::NodeCheck& node : sweep.nodes()) {
    const v1::LeftoverResult& found = node.result().leftovers();
    const std::string blind = Blindness(sweep, node);
    nlohmann::ordered_json host;
    host["host"] = node.host();
    host["error"] = blind.empty() ? nlohmann::ordered_json(nullptr)
                                  : nlohmann::ordered_json(ToValidUtf8(blind));
    host["dead"] = Values(found.dead());
    host["ended"] = Values(found.ended());
    host["live"] = Values(found.live());
    hosts.push_back(std::move(host));
  }
  return nlohmann::ordered_json({{"hosts", hosts}})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster::cli
