#include "controller/preflight/network_plan.h"

#include <algorithm>
#include <set>

namespace muster::preflight {
namespace {

constexpr uint32_t kFirstPort = 20000;
constexpr uint32_t kLastPort = 32000;
constexpr size_t kPorts = 3;  // so that one in use does not matter

// A well-mixed number from a counter (the finalizer of SplitMix64).
uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

std::vector<uint32_t> PeersOf(uint32_t i, uint32_t nodes) {
  std::set<uint32_t> peers;
  if (nodes <= kAllPairsLimit || i == 0) {
    for (uint32_t j = 0; j < nodes; ++j) peers.insert(j);
  } else {
    peers.insert(0);
    for (uint32_t stride = 1; stride < nodes; stride *= 2) peers.insert((i + stride) % nodes);
  }
  peers.erase(i);
  return {peers.begin(), peers.end()};
}

std::vector<uint32_t> ProbePorts(const v1::JobSpec& spec, uint64_t nonce) {
  const uint32_t first = spec.has_port_range() ? spec.port_range().first() : kFirstPort;
  const uint32_t last = spec.has_port_range() ? spec.port_range().last() : kLastPort;
  const uint64_t count = uint64_t{last} - first + 1;
  std::vector<uint32_t> ports;
  for (uint64_t i = 0; ports.size() < std::min<uint64_t>(kPorts, count); ++i) {
    // Neighbours after a random first: distinct, and all of a small range.
    ports.push_back(first + static_cast<uint32_t>((Mix(nonce) % count + i) % count));
  }
  return ports;
}

std::vector<v1::NetworkProbe> NetworkProbes(const v1::JobSpec& spec, const v1::Plan& plan,
                                            const std::vector<bool>& absent,
                                            const std::string& token, uint64_t nonce) {
  const auto nodes = static_cast<uint32_t>(plan.nodes_size());
  std::vector<v1::NetworkProbe> probes(nodes);
  const std::vector<uint32_t> ports = ProbePorts(spec, nonce);
  for (uint32_t i = 0; i < nodes; ++i) {
    const v1::NodePlan& node = plan.nodes(static_cast<int>(i));
    v1::NetworkProbe& probe = probes[i];
    probe.set_token(token);
    probe.set_self(i);
    probe.set_listen_address(node.data_addr());
    probe.mutable_ports()->Add(ports.begin(), ports.end());
    // The interface is the one on the way to the head; the head's, on the way to the next node.
    if (nodes > 1) probe.set_route_to(plan.nodes(i == 0 ? 1 : 0).data_addr());
    if (node.host().has_iface()) probe.set_iface(node.host().iface());
  }
  for (uint32_t i = 0; i < nodes; ++i) {
    if (absent[i]) continue;
    for (const uint32_t j : PeersOf(i, nodes)) {
      if (absent[j]) continue;
      v1::NetworkPeer& peer = *probes[i].add_connect();
      peer.set_node(j);
      peer.set_address(plan.nodes(static_cast<int>(j)).data_addr());
      probes[j].add_expect(i);
    }
  }
  return probes;
}

}  // namespace muster::preflight
