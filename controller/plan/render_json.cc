#include <nlohmann/json.hpp>

#include "controller/plan/render.h"

namespace muster::plan {
namespace {

using Json = nlohmann::ordered_json;

Json NodeJson(const v1::NodePlan& node) {
  const v1::Host& host = node.host();
  Json out = {{"host", host.host()},
              {"data_addr", node.data_addr()},
              {"first_rank", node.first_rank()},
              {"num_ranks", node.num_ranks()},
              {"line", host.line()}};
  if (host.gpus_size() > 0) {
    out["gpus"] = std::vector<uint32_t>(host.gpus().begin(), host.gpus().end());
  }
  if (host.has_type()) out["type"] = host.type();
  if (host.has_iface()) out["iface"] = host.iface();
  if (host.has_transport()) out["transport"] = host.transport();
  return out;
}

Json RankJson(const v1::RankPlan& rank, const v1::Plan& plan) {
  return {{"rank", rank.rank()},
          {"host", plan.nodes(static_cast<int>(rank.node())).host().host()},
          {"node", rank.node()},
          {"local_rank", rank.local_rank()},
          {"device", rank.has_device() ? Json(rank.device()) : Json(nullptr)},
          {"tp", rank.tp()},
          {"cp", rank.cp()},
          {"dp", rank.dp()},
          {"pp", rank.pp()}};
}

}  // namespace

std::string ToJson(const v1::Plan& plan) {
  Json out = {
      {"name", plan.name()},
      {"world", plan.world()},
      {"tp", plan.tp()},
      {"pp", plan.pp()},
      {"cp", plan.cp()},
      {"vp", plan.vp()},
      {"dp", plan.dp()},
      {"micro_batch", plan.micro_batch()},
      {"num_microbatches", plan.num_microbatches()},
      {"global_batch", plan.global_batch()},
      {"head_addr", plan.nodes(0).data_addr()},
      {"nodes", Json::array()},
      {"ranks", Json::array()},
      {"argv", std::vector<std::string>(plan.argv().begin(), plan.argv().end())},
      {"env", Json::object()},
      {"arithmetic", std::vector<std::string>(plan.arithmetic().begin(), plan.arithmetic().end())},
      {"warnings", std::vector<std::string>(plan.warnings().begin(), plan.warnings().end())}};
  for (const v1::NodePlan& node : plan.nodes()) out["nodes"].push_back(NodeJson(node));
  for (const v1::RankPlan& rank : plan.ranks()) out["ranks"].push_back(RankJson(rank, plan));
  for (const v1::EnvVar& variable : plan.env()) out["env"][variable.name()] = variable.value();
  // argv and environment are bytes of any encoding.
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muster::plan
