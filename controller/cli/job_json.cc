#include "controller/cli/job_json.h"

#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "controller/cli/exit_code.h"
#include "controller/cli/text.h"
#include "controller/engine/transitions.h"

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename Repeated>
Json Words(const Repeated& words) {
  Json out = Json::array();
  for (const std::string& word : words) out.push_back(ToValidUtf8(word));
  return out;
}

Json SurvivorValues(const google::protobuf::RepeatedPtrField<v1::Survivor>& processes) {
  Json out = Json::array();
  for (const v1::Survivor& process : processes) {
    out.push_back({{"pid", process.pid()},
                   {"uid", process.uid()},
                   {"user", ToValidUtf8(process.user())},
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
  out["held"] = Words(end.report().held());
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
  if (status.lost_bytes() > 0) {
    out["lost_bytes"] = status.lost_bytes();
    out["lost_reason"] = ToValidUtf8(status.lost_reason());
  }
  if (status.log_waits()) out["log_waits"] = true;
  return out;
}

Json JobValue(const v1::Job& job) {
  const v1::Outcome& outcome = job.outcome();
  const bool ended = engine::IsTerminal(job.state());
  Json out;
  out["job"] = job.id().empty() ? Json(nullptr) : Json(job.id());
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
    Json checked;  // null: never
    if (node.has_last_check()) {
      Json findings = Json::array();
      for (const v1::Finding& finding : node.last_check().findings()) {
        findings.push_back({{"check", finding.check()},
                            {"severity", finding.severity()},
                            {"value", ToValidUtf8(finding.value())},
                            {"fix", ToValidUtf8(finding.fix())}});
      }
      checked = {{"time_ns", node.last_check().time_ns()}, {"findings", findings}};
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
                   {"certificate_ends", facts.certificate_ends_s()},
                   {"jobs", Words(node.job_ids())},
                   {"checked", checked},
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
