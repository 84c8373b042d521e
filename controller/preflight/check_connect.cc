#include <absl/strings/str_cat.h>

#include <algorithm>
#include <map>
#include <utility>

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
    out.push_back(
        {"connect", Severity::kError, node.host, why, "",
         absl::StrCat("see whether ", node.host,
                      " is up and how it is reached, or take it out with --exclude ", node.host)});
  }
}

void CheckMachine(const Nodes& nodes, const Options&, Findings& out) {
  std::map<std::pair<std::string, uint64_t>, std::string> seen;
  for (const auto& node : nodes) {
    if (!node.twin.empty()) {
      // Which of the two links is up is chance; the later line is the odd one.
      const auto later = std::find_if(nodes.begin(), nodes.end(), [&](const NodeFacts& other) {
                           return other.host == node.twin;
                         }) > nodes.begin() + (&node - nodes.data());
      out.push_back(
          {"machine", Severity::kError, later ? node.twin : node.host,
           SameAs(later ? node.host : node.twin) + " (the same musterd answers under both names)",
           "", kOneLine});
      continue;
    }
    // Several workers on loopback addresses of one machine are a wish, not a slip.
    const bool loopback =
        node.host.rfind("127.", 0) == 0 || node.host == "localhost" || node.host == "::1";
    if (loopback || !node.absent.empty() || node.hello.boot_id().empty()) continue;
    const auto key = std::make_pair(node.hello.boot_id(), node.hello.net_ns());
    const auto [it, added] = seen.emplace(key, node.host);
    if (added) continue;
    out.push_back({"machine", Severity::kError, node.host,
                   SameAs(it->second) + " (same boot id and network namespace)", "", kOneLine});
  }
}

}  // namespace muster::preflight
