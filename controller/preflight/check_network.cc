#include <absl/strings/str_cat.h>

#include <set>

#include "controller/hostfile/host_word.h"
#include "controller/preflight/check_functions.h"
#include "controller/preflight/reach.h"

namespace muster::preflight {
namespace {

constexpr size_t kMostPairs = 16;

std::string OpenPorts(const std::string& host, const Options& options) {
  return absl::StrCat("open the ports in the firewall of ", host,
                      " (iptables -S; nft list ruleset)",
                      options.ports.empty() ? "" : absl::StrCat(", here ", options.ports),
                      ", or name those that are open with --port-range FIRST-LAST");
}

void AddOdd(const Nodes& nodes, const Reach::Odd& odd, const Options& options, Findings& out) {
  const NodeFacts& node = nodes[odd.node];
  std::string value;
  std::string fix;
  switch (odd.fault) {
    case Reach::Fault::kIsolated:
      value = absl::StrCat("is cut off on its data address ", node.data_addr, ": ", odd.peers,
                           " hosts neither reach it nor are reached (", odd.error, ")");
      fix = absl::StrCat("on ", node.host,
                         ": ip addr; ip route; check cable, VLAN and firewall, or "
                         "give the right address with addr= in the hostfile");
      break;
    case Reach::Fault::kDeaf:
      value = absl::StrCat("none of ", odd.peers, " hosts reaches it on its data address ",
                           node.data_addr, " (", odd.error, ")");
      fix = OpenPorts(node.host, options);
      break;
    case Reach::Fault::kMute:
      value = absl::StrCat("reaches none of ", odd.peers, " hosts (", odd.error, ")");
      fix = absl::StrCat("on ", node.host, ": ip route; check outgoing rules (iptables -S OUTPUT)");
      break;
  }
  out.push_back({"network", Severity::kError, node.host, value, "", fix});
}

void AddPair(const Nodes& nodes, const Reach::Pair& pair, const Options& options, Findings& out) {
  const NodeFacts& from = nodes[pair.edge.from];
  const NodeFacts& to = nodes[pair.edge.to];
  const std::string& address = pair.edge.address.empty() ? to.data_addr : pair.edge.address;
  if (hostfile::IsLoopbackHost(address) && address != to.data_addr) {
    out.push_back({"network", Severity::kError, from.host,
                   absl::StrCat("takes ", to.data_addr, " for itself (", address, ")"), "",
                   absl::StrCat("write addr=<its address> behind ", to.host,
                                " in the hostfile, or correct /etc/hosts on ", from.host)});
    return;
  }
  out.push_back(
      {"network", Severity::kError, from.host,
       absl::StrCat("can't reach ", to.host, " at ", address, ": ", pair.edge.error,
                    pair.both_ways ? "; nor does it the other way" : ""),
       "",
       absl::StrCat("on ", from.host, ": ip route get ", address,
                    "; on both: iptables -S; nft list ruleset. ",
                    options.ports.empty() ? "" : absl::StrCat("Tried: TCP ", options.ports))});
}

}  // namespace

void CheckInterface(const Nodes& nodes, const Options&, Findings& out) {
  for (const auto& node : nodes) {
    const v1::NetworkResult& network = node.probe.network();
    if (network.route_error().empty()) continue;
    const bool given = !network.iface().empty();
    out.push_back({"interface", Severity::kError, node.host, network.route_error(), "",
                   given ? absl::StrCat("correct iface= of ", node.host, " in the hostfile")
                         : absl::StrCat("on ", node.host,
                                        ": ip addr; ip route; or give the "
                                        "interface with iface= in the hostfile")});
  }
}

void CheckNetwork(const Nodes& nodes, const Options& options, Findings& out) {
  std::set<size_t> shared;  // two names of one machine take the ports from each other
  for (const auto& [second, first] : SecondNames(nodes)) shared.insert({second, first});
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeFacts& node = nodes[i];
    const std::string& error = node.probe.network().listen_error();
    if (!node.absent.empty() || error.empty() || shared.contains(i)) continue;
    const bool taken = error.find("in use") != std::string::npos;
    out.push_back({"network", Severity::kError, node.host, error, "",
                   taken ? absl::StrCat("end the program that holds the port on ", node.host,
                                        ", or choose others with --port-range FIRST-LAST")
                         : absl::StrCat("correct addr= of ", node.host, " in the hostfile")});
  }
  const Reach reach(nodes);
  if (reach.nothing_works()) {
    out.push_back({"network", Severity::kError, "",
                   "no host reaches another one on the data addresses", "",
                   OpenPorts("every host", options)});
  }
  for (const auto& odd : reach.odd()) AddOdd(nodes, odd, options, out);
  for (size_t i = 0; i < reach.pairs().size() && i < kMostPairs; ++i)
    AddPair(nodes, reach.pairs()[i], options, out);
  if (reach.pairs().size() > kMostPairs) {
    out.push_back({"network", Severity::kError, "",
                   absl::StrCat(reach.pairs().size() - kMostPairs, " more pairs like these"), "",
                   ""});
  }
}

void CheckPort(const Nodes& nodes, const Options&, Findings& out) {
  if (nodes.empty() || nodes.front().probe.port_error().empty()) return;
  const std::string& error = nodes.front().probe.port_error();
  const bool taken = error.find("in use") != std::string::npos;
  out.push_back({"port", Severity::kError, nodes.front().host, error, "",
                 taken ? "end the program that holds the port, or choose others with --port-range "
                         "FIRST-LAST"
                       : "correct the head's addr= in the hostfile"});
}

}  // namespace muster::preflight
