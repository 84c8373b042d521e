#include "controller/plan/nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status.h"
#include "controller/plan/sizes.h"

namespace muster::plan {
namespace {

// "node02 (hosts:3)"
std::string Name(const v1::Host& host, const v1::Inventory& inventory) {
  const std::string& source = inventory.source();
  if (source.empty()) return host.host();
  return fmt::format("{} ({}:{})", host.host(), source, host.line());
}

// Where other ranks reach this host: a plain address where the name is known, so that nothing has
// to be looked up.
std::string DataAddress(const v1::Host& host) {
  if (host.has_addr()) return host.addr();
  if (host.host() == "localhost") return "127.0.0.1";
  return host.host();
}

absl::StatusOr<uint32_t> RanksOn(const v1::Host& host, const v1::JobSpec& spec) {
  const uint32_t wanted = spec.nproc_per_node();
  if (!host.has_slots()) {
    if (wanted > 0) return wanted;
    const bool list = spec.inventory().source() == "--host";
    return absl::FailedPreconditionError(
        fmt::format("the slots of {} are not known yet: write {} there, or --nproc-per-node N",
                    Name(host, spec.inventory()), list ? host.host() + ":N" : "slots=N"));
  }
  if (wanted == 0) return host.slots();
  if (wanted > host.slots()) {
    return absl::InvalidArgumentError(
        fmt::format("{} has {} slots, --nproc-per-node asks for {}: at most {}",
                    Name(host, spec.inventory()), host.slots(), wanted, host.slots()));
  }
  return wanted;
}

}  // namespace

absl::StatusOr<std::vector<v1::NodePlan>> SelectNodes(const v1::JobSpec& spec) {
  std::vector<const v1::Host*> hosts;
  for (const v1::Host& host : spec.inventory().hosts()) {
    if (!host.spare()) hosts.push_back(&host);
  }
  if (hosts.empty()) {
    return absl::InvalidArgumentError("no hosts: give --hostfile FILE or --host HOST:SLOTS,...");
  }
  if (spec.nnodes() > hosts.size()) {
    return absl::InvalidArgumentError(
        fmt::format("--nnodes asks for {} hosts, {} has {} that are no spares", spec.nnodes(),
                    spec.inventory().source().empty() ? "the inventory" : spec.inventory().source(),
                    hosts.size()));
  }
  if (spec.nnodes() > 0) hosts.resize(spec.nnodes());

  std::vector<v1::NodePlan> nodes;
  uint64_t world = 0;
  for (const v1::Host* host : hosts) {
    MUSTER_ASSIGN_OR_RETURN(const uint32_t ranks, RanksOn(*host, spec));
    v1::NodePlan& node = nodes.emplace_back();
    *node.mutable_host() = *host;
    node.set_first_rank(static_cast<uint32_t>(world));
    node.set_num_ranks(ranks);
    node.set_data_addr(DataAddress(*host));
    world += ranks;
    if (world > kMaxWorld) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} ranks: use fewer hosts or slots", kMaxWorld));
    }
  }
  if (world == 0) return absl::InvalidArgumentError("no slots on any host");
  return nodes;
}

uint32_t World(const std::vector<v1::NodePlan>& nodes) {
  return nodes.empty() ? 0 : nodes.back().first_rank() + nodes.back().num_ranks();
}

std::vector<std::string> UsableParts(const std::vector<v1::NodePlan>& nodes,
                                     const v1::Parallel& parallel, const ModelShape* model) {
  std::vector<std::string> out;
  for (size_t n = nodes.size(); n-- > 1;) {
    const uint32_t slots = nodes[n].first_rank();
    if (!Fit(slots, parallel, nullptr, model)) {
      out.push_back(fmt::format("--nnodes {} ({} slots)", n, slots));
      break;
    }
  }
  uint32_t each = nodes[0].num_ranks();
  for (const v1::NodePlan& node : nodes) each = std::min(each, node.num_ranks());
  for (; each > 0; --each) {
    const auto slots = static_cast<uint32_t>(each * nodes.size());
    if (slots < World(nodes) && !Fit(slots, parallel, nullptr, model)) {
      out.push_back(fmt::format("--nproc-per-node {} ({} slots)", each, slots));
      break;
    }
  }
  return out;
}

void PlaceRanks(v1::Plan& plan) {
  for (int n = 0; n < plan.nodes_size(); ++n) {
    const v1::NodePlan& node = plan.nodes(n);
    for (uint32_t local = 0; local < node.num_ranks(); ++local) {
      const uint32_t rank = node.first_rank() + local;
      v1::RankPlan& out = *plan.add_ranks();
      out.set_rank(rank);
      out.set_local_rank(local);
      out.set_node(static_cast<uint32_t>(n));
      if (static_cast<int>(local) < node.host().gpus_size()) {
        out.set_device(node.host().gpus(static_cast<int>(local)));
      }
      uint32_t rest = rank;
      out.set_tp(rest % plan.tp());
      rest /= plan.tp();
      out.set_cp(rest % plan.cp());
      rest /= plan.cp();
      out.set_dp(rest % plan.dp());
      out.set_pp(rest / plan.dp());
    }
  }
}

}  // namespace muster::plan
