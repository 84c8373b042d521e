#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <map>
#include <utility>

#include "controller/hostfile/host_word.h"
#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

constexpr char kOneLine[] =
    "remove one of the two lines from the hostfile, and give the other one all slots";

std::string SameAs(const std::string& host) {
  return absl::StrCat("is the same machine as ", host);
}

}  // namespace

void CheckConnect(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    if (!node.twin.empty() || (node.absent.empty() && node.probe.probe_error().empty())) continue;
    const std::string& why = node.absent.empty() ? node.probe.probe_error() : node.absent;
    // A refusal says itself what would help; silence does not.
    const bool silent = absl::StartsWith(why, "did not");
    const std::string fix =
        silent ? absl::StrCat("see whether ", node.host, " is up and how it is reached")
               : "mend that";
    out.push_back({"connect", Severity::kError, node.host, why, "",
                   absl::StrCat(fix, ", or take ", silent ? "it" : node.host,
                                " out with --exclude ", node.host)});
  }
}

std::map<size_t, size_t> SecondNames(const Nodes& nodes) {
  std::map<std::pair<std::string, uint64_t>, size_t> seen;
  std::map<size_t, size_t> second;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeFacts& node = nodes[i];
    // Several workers on loopback addresses of one machine are a wish, not a slip.
    if (hostfile::IsLoopbackHost(node.host) || !node.absent.empty() || node.hello.boot_id().empty())
      continue;
    const auto key = std::make_pair(node.hello.boot_id(), node.hello.net_ns());
    const auto [it, added] = seen.emplace(key, i);
    if (!added) second[i] = it->second;
  }
  return second;
}

void CheckMachine(const Nodes& nodes, const Options&, Findings& out) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].twin.empty()) continue;
    // Which of the two links is up is chance; the later line is the odd one.
    size_t twin = 0;
    while (twin < nodes.size() && nodes[twin].host != nodes[i].twin) ++twin;
    const std::string& first = twin > i ? nodes[i].host : nodes[i].twin;
    out.push_back({"machine", Severity::kError, twin > i ? nodes[i].twin : nodes[i].host,
                   SameAs(first) + " (the same musterd answers under both names)", "", kOneLine});
  }
  for (const auto& [second, first] : SecondNames(nodes)) {
    out.push_back({"machine", Severity::kError, nodes[second].host,
                   SameAs(nodes[first].host) + " (same boot id and network namespace)", "",
                   kOneLine});
  }
}

}  // namespace muster::preflight
