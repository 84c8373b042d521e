#include <fmt/format.h>

#include <set>

#include "controller/plan/nodes.h"

namespace muster::plan {
namespace {

// TP groups are runs of TP consecutive ranks, so one crosses hosts when its ends are on different
// nodes.
void WarnTensorGroups(const v1::Plan& plan, std::vector<std::string>& out) {
  uint32_t crossing = 0;
  std::string first;
  for (uint32_t start = 0; start < plan.world(); start += plan.tp()) {
    const uint32_t end = start + plan.tp() - 1;
    const auto& a = plan.nodes(static_cast<int>(plan.ranks(static_cast<int>(start)).node()));
    const auto& b = plan.nodes(static_cast<int>(plan.ranks(static_cast<int>(end)).node()));
    if (a.first_rank() == b.first_rank()) continue;
    if (++crossing == 1) {
      first =
          fmt::format("ranks {}-{} from {} to {}", start, end, a.host().host(), b.host().host());
    }
  }
  if (crossing == 0) return;
  out.push_back(fmt::format(
      "{} of {} TP groups cross hosts ({}): tensor parallelism needs the fastest links; "
      "choose a TP that divides the slots of each host",
      crossing, plan.world() / plan.tp(), first));
}

void WarnUnequalSlots(const v1::Plan& plan, std::vector<std::string>& out) {
  const v1::NodePlan& first = plan.nodes(0);
  for (const v1::NodePlan& node : plan.nodes()) {
    if (node.num_ranks() == first.num_ranks()) continue;
    out.push_back(fmt::format(
        "hosts have unequal slots ({} {}, {} {}): programs that compute local rank or node from "
        "RANK and one LOCAL_WORLD_SIZE will be wrong",
        first.host().host(), first.num_ranks(), node.host().host(), node.num_ranks()));
    return;
  }
}

void WarnMixedTypes(const v1::Plan& plan, std::vector<std::string>& out) {
  std::set<std::string> types;
  std::string text;
  for (const v1::NodePlan& node : plan.nodes()) {
    if (!node.host().has_type() || !types.insert(node.host().type()).second) continue;
    text +=
        fmt::format("{}{} on {}", text.empty() ? "" : ", ", node.host().type(), node.host().host());
  }
  if (types.size() > 1) {
    out.push_back(fmt::format("hosts differ in type ({}): the slowest sets the pace", text));
  }
}

void WarnHostNames(const v1::Inventory& inventory, std::vector<std::string>& out) {
  for (const uint32_t line : inventory.warnings()) {
    out.push_back(fmt::format("{}:{}: '_' in a host name: not every resolver accepts it",
                              inventory.source().empty() ? "hostfile" : inventory.source(), line));
  }
}

}  // namespace

std::vector<std::string> PlanWarnings(const v1::Plan& plan, const v1::Inventory& inventory) {
  std::vector<std::string> out;
  WarnTensorGroups(plan, out);
  WarnUnequalSlots(plan, out);
  WarnMixedTypes(plan, out);
  WarnHostNames(inventory, out);
  return out;
}

}  // namespace muster::plan
