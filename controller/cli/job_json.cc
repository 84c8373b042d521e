#include "controller/cli/job_json.h"

#include <nlohmann/json.hpp>

#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Json HostValue(const v1::Host& host) {
  Json out;
  out["host"] = host.host();
  out["port"] = host.has_port() ? Json(host.port()) : Json(nullptr);
  out["user"] = host.has_user() ? Json(host.user()) : Json(nullptr);
  out["slots"] = host.has_slots() ? Json(host.slots()) : Json(nullptr);
  out["line"] = host.line();
  if (host.has_max_slots()) out["max_slots"] = host.max_slots();
  if (host.gpus_size() > 0)
    out["gpus"] = std::vector<uint32_t>(host.gpus().begin(), host.gpus().end());
  if (host.has_type()) out["type"] = host.type();
  if (host.spare()) out["spare"] = true;
  if (host.has_addr()) out["addr"] = host.addr();
  if (host.has_iface()) out["iface"] = host.iface();
  if (host.has_transport()) out["transport"] = host.transport();
  if (host.has_worker_port()) out["worker_port"] = host.worker_port();
  return out;
}

template <typename Repeated>
Json Words(const Repeated& words) {
  Json out = Json::array();
  for (const std::string& word : words) out.push_back(ToValidUtf8(word));
  return out;
}

Json EnvValue(const google::protobuf::RepeatedPtrField<v1::EnvVar>& env) {
  Json out = Json::object();
  for (const v1::EnvVar& var : env) out[ToValidUtf8(var.name())] = ToValidUtf8(var.value());
  return out;
}

Json RankValue(const v1::RankPlan& rank, const v1::Plan& plan) {
  Json out;
  out["rank"] = rank.rank();
  if (rank.node() < static_cast<uint32_t>(plan.nodes_size())) {
    out["host"] = plan.nodes(static_cast<int>(rank.node())).host().host();
  }
  out["local_rank"] = rank.local_rank();
  out["device"] = rank.has_device() ? Json(rank.device()) : Json(nullptr);
  out["tp"] = rank.tp();
  out["cp"] = rank.cp();
  out["dp"] = rank.dp();
  out["pp"] = rank.pp();
  return out;
}

Json PlanValue(const v1::Plan& plan) {
  Json out;
  out["name"] = plan.name();
  out["world"] = plan.world();
  out["tp"] = plan.tp();
  out["pp"] = plan.pp();
  out["cp"] = plan.cp();
  out["vp"] = plan.vp();
  out["dp"] = plan.dp();
  out["micro_batch"] = plan.micro_batch();
  out["num_microbatches"] = plan.num_microbatches();
  out["global_batch"] = plan.global_batch();
  out["nodes"] = Json::array();
  for (const v1::NodePlan& node : plan.nodes()) {
    out["nodes"].push_back({{"host", node.host().host()},
                            {"first_rank", node.first_rank()},
                            {"num_ranks", node.num_ranks()},
                            {"data_addr", node.data_addr()}});
  }
  out["ranks"] = Json::array();
  for (const v1::RankPlan& rank : plan.ranks()) out["ranks"].push_back(RankValue(rank, plan));
  out["argv"] = Words(plan.argv());
  out["env"] = EnvValue(plan.env());
  out["arithmetic"] = Words(plan.arithmetic());
  out["warnings"] = Words(plan.warnings());
  return out;
}

Json SurvivorValues(const google::protobuf::RepeatedPtrField<v1::Survivor>& processes) {
  Json out = Json::array();
  for (const v1::Survivor& process : processes) {
    out.push_back({{"pid", process.pid()},
                   {"uid", process.uid()},
                   {"command", ToValidUtf8(process.command())},
                   {"state", process.state()},
                   {"wait_channel", process.wait_channel()},
                   {"rank", process.has_rank() ? Json(process.rank()) : Json(nullptr)}});
  }
  return out;
}

Json EndValue(const v1::NodeEnd& end) {
  Json out;
  out["host"] = end.host();
  out["clean"] = end.clean();
  out["verified"] = end.report().verified();
  out["survivors"] = SurvivorValues(end.report().survivors());
  out["swept"] = SurvivorValues(end.report().swept());
  out["notes"] = Words(end.report().notes());
  return out;
}

Json RankStatusValue(const v1::RankView& view) {
  const v1::RankStatus& status = view.status();
  Json out;
  out["rank"] = view.plan().rank();
  out["host"] = view.host();
  out["state"] = RankStateName(status.state());
  out["pid"] = status.pid();
  if (status.stopped()) out["stopped"] = true;
  if (!status.error().empty()) out["error"] = ToValidUtf8(status.error());
  if (status.has_exit()) {
    out["code"] = status.exit().code();
    out["signal"] = status.exit().signal();
    if (status.exit().escalated()) out["needed_sigkill"] = true;
  }
  return out;
}

Json JobValue(const v1::Job& job) {
  const v1::Outcome& outcome = job.outcome();
  const bool ended = IsTerminal(job.state());
  Json out;
  out["job"] = job.id();
  out["name"] = job.plan().name().empty() ? job.spec().name() : job.plan().name();
  out["state"] = StateName(job.state());
  out["cause"] = ended ? Json(CauseName(outcome.cause())) : Json(nullptr);
  out["code"] = ended ? Json(ExitCodeFor(job)) : Json(nullptr);
  out["rank"] = outcome.has_rank() ? Json(outcome.rank()) : Json(nullptr);
  out["host"] = outcome.host().empty() ? Json(nullptr) : Json(outcome.host());
  out["signal"] = outcome.signal() == 0 ? Json(nullptr) : Json(outcome.signal());
  out["message"] = ToValidUtf8(outcome.message());
  out["output_dir"] = job.output_dir();
  out["attempt"] = job.attempt();
  out["world"] = job.plan().world();
  out["submitted_ns"] = job.submitted_ns();
  out["started_ns"] = job.started_ns();
  out["ended_ns"] = job.ended_ns();
  out["nodes"] = Json::array();
  for (const v1::NodeEnd& end : job.ends()) out["nodes"].push_back(EndValue(end));
  if (job.ranks_size() > 0) {
    out["ranks"] = Json::array();
    for (const v1::RankView& rank : job.ranks()) out["ranks"].push_back(RankStatusValue(rank));
  }
  return out;
}

}  // namespace

std::string HostsJson(const v1::Inventory& inventory) {
  Json out;
  out["hosts"] = Json::array();
  for (const v1::Host& host : inventory.hosts()) out["hosts"].push_back(HostValue(host));
  out["warnings"] = std::vector<uint32_t>(inventory.warnings().begin(), inventory.warnings().end());
  return Dump(out);
}

std::string HostsErrorJson(uint32_t line, uint32_t other_line, const std::string& message) {
  Json error;
  error["line"] = line;
  if (other_line != 0) error["other_line"] = other_line;
  error["message"] = ToValidUtf8(message);
  return Dump({{"error", error}});
}

std::string PlanJson(const v1::Plan& plan) {
  return Dump(PlanValue(plan));
}

std::string JobJson(const v1::Job& job) {
  return Dump(JobValue(job));
}

std::string JobListJson(const v1::ListJobsResponse& jobs) {
  Json out = Json::array();
  for (const v1::Job& job : jobs.jobs()) out.push_back(JobValue(job));
  return Dump({{"jobs", out}});
}

std::string NodeListJson(const v1::ListNodesResponse& nodes) {
  Json out = Json::array();
  for (const v1::Node& node : nodes.nodes()) {
    const v1::WorkerHello& facts = node.facts();
    Json devices = Json::array();
    for (const v1::Device& device : facts.devices()) {
      devices.push_back({{"index", device.index()},
                         {"kind", device.kind()},
                         {"name", device.name()},
                         {"memory_total_bytes", device.memory_total_bytes()},
                         {"memory_used_bytes", device.memory_used_bytes()}});
    }
    out.push_back({{"host", node.host()},
                   {"state", LinkStateName(node.state())},
                   {"transport", node.transport()},
                   {"name", facts.node_name()},
                   {"version", facts.version()},
                   {"cores", facts.cores()},
                   {"memory_bytes", facts.memory_bytes()},
                   {"devices", devices},
                   {"state_dir", facts.state_dir()},
                   {"pid", facts.pid()},
                   {"jobs", Words(node.job_ids())},
                   {"error", ToValidUtf8(node.error())}});
  }
  return Dump({{"nodes", out}});
}

std::string InfoJson(const std::string& client_version, const v1::InfoResponse* controller) {
  Json out;
  out["version"] = client_version;
  out["controller"] = nullptr;
  if (controller != nullptr) {
    out["controller"] = {{"version", controller->version()},
                         {"pid", controller->pid()},
                         {"id", controller->controller_id()},
                         {"state_dir", controller->state_dir()},
                         {"active_jobs", controller->active_jobs()}};
  }
  return Dump(out);
}

std::string ErrorJson(int code, const std::string& message) {
  return Dump({{"error", {{"code", code}, {"message", ToValidUtf8(message)}}}});
}

}  // namespace muster::cli
