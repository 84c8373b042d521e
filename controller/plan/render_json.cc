#include <absl/strings/ascii.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "controller/plan/groups.h"
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

Json PlanJson(const v1::Plan& plan) {
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
  return out;
}

// argv and environment are bytes of any encoding.
std::string Dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json GroupsJson(const v1::Plan& plan) {
  Json out = Json::object();
  for (const GroupInfo& info : GroupKinds()) {
    out[std::string(info.name)] = {{"groups", Groups(plan, info.kind)},
                                   {"crossing_hosts", Spread(plan, info.kind).crossing}};
  }
  return out;
}

Json ModelJson(const ModelShape& m) {
  return {{"parameters", m.vocab > 0 ? Json(m.Parameters()) : Json(nullptr)},
          {"layers", m.layers},
          {"hidden", m.hidden},
          {"ffn", m.ffn},
          {"heads", m.heads},
          {"query_groups", m.groups},
          {"sequence", m.seq},
          {"vocabulary", m.vocab},
          {"fp8", m.fp8}};
}

// {"weights": bytes, ..., "total": bytes}
Json MemoryJson(const MemoryParts& memory) {
  Json out = Json::object();
  for (const MemoryPart& part : kMemoryParts) {
    std::string key(part.name);
    std::replace(key.begin(), key.end(), ' ', '_');
    std::transform(key.begin(), key.end(), key.begin(),
                   [](char c) { return absl::ascii_tolower(static_cast<unsigned char>(c)); });
    out[key] = std::llround(memory.*part.field);
  }
  out["total"] = std::llround(memory.Total());
  return out;
}

Json PerformanceJson(const Performance& p) {
  return {{"tokens_per_second", p.tokens_per_second},
          {"tokens_per_second_per_rank", p.tokens_per_second_per_rank},
          {"tflops_per_rank", p.tflops_per_rank},
          {"step_seconds",
           {{"total", p.step.Total()},
            {"compute", p.step.compute},
            {"tp", p.step.tp},
            {"cp", p.step.cp},
            {"pp", p.step.pp},
            {"bubble", p.step.bubble},
            {"dp", p.step.dp},
            {"optimizer", p.step.optimizer}}},
          {"bytes_sent_per_step",
           {{"total", p.volume.Total()},
            {"between_hosts", p.volume.between_hosts},
            {"tp", p.volume.tp},
            {"cp", p.volume.cp},
            {"pp", p.volume.pp},
            {"dp", p.volume.dp}}}};
}

Json DeviceJson(const Forecast& f) {
  if (!f.device) return nullptr;
  return {{"bytes", std::llround(f.device->bytes)}, {"source", f.device->source}};
}

Json FitsJson(const Forecast& f) {
  if (!f.device || f.memory.empty()) return nullptr;
  return !f.TooLarge();
}

void AddForecast(const Forecast& f, Json& out) {
  out["model"] = f.model ? ModelJson(*f.model) : Json(nullptr);
  out["stages"] = Json::array();
  for (uint32_t stage = 0; stage < f.split.counts.size(); ++stage) {
    Json row = {{"stage", stage},
                {"layers", f.split.Layers(stage)},
                {"layer_numbers", f.split.Ranges(stage)},
                {"memory", f.memory.empty() ? Json(nullptr) : MemoryJson(f.memory[stage])}};
    out["stages"].push_back(std::move(row));
  }
  if (f.memory.empty()) {
    out["memory_unknown_because"] = f.model ? f.why_no_memory : f.why_no_model;
  }
  out["device_memory"] = DeviceJson(f);
  out["fits"] = FitsJson(f);
  out["forecast"] = f.performance ? PerformanceJson(*f.performance) : Json(nullptr);
}

Json RowJson(const LayoutRow& row) {
  const Sizes& s = row.sizes;
  return {{"tp", s.tp},
          {"pp", s.pp},
          {"cp", s.cp},
          {"vp", s.vp},
          {"dp", s.dp},
          {"micro_batch", s.micro_batch},
          {"num_microbatches", s.num_microbatches},
          {"global_batch", s.global_batch},
          {"current", row.current},
          {"bubble", row.bubble},
          {"memory", row.memory ? Json(std::llround(*row.memory)) : Json(nullptr)},
          {"fits", row.memory ? Json(!row.too_large) : Json(nullptr)},
          {"forecast", row.performance ? PerformanceJson(*row.performance) : Json(nullptr)}};
}

}  // namespace

std::string ToJson(const v1::Plan& plan) {
  return Dump(PlanJson(plan));
}

std::string ToJson(const v1::Plan& plan, const Forecast& forecast) {
  Json out = PlanJson(plan);
  const Sizes sizes = SizesOf(plan);
  out["bubble"] = sizes.num_microbatches > 0 ? Json(BubbleFraction(sizes)) : Json(nullptr);
  out["groups"] = GroupsJson(plan);
  AddForecast(forecast, out);
  return Dump(out);
}

std::string ToJson(const v1::Plan& plan, const v1::JobSpec& job, const v1::RankSpec& spec,
                   const Forecast& forecast) {
  const v1::RankPlan& rank = plan.ranks(static_cast<int>(spec.rank()));
  Json out = RankJson(rank, plan);
  out["working_dir"] = spec.working_dir();
  out["argv"] = std::vector<std::string>(spec.argv().begin(), spec.argv().end());
  out["env"] = Json::object();
  for (const v1::EnvVar& variable : spec.env()) out["env"][variable.name()] = variable.value();
  for (const v1::EnvVar& secret : job.secrets()) out["env"][secret.name()] = "****";
  out["groups"] = Json::object();
  for (const GroupInfo& info : GroupKinds()) {
    for (const std::vector<uint32_t>& group : Groups(plan, info.kind)) {
      if (std::find(group.begin(), group.end(), rank.rank()) == group.end()) continue;
      out["groups"][std::string(info.name)] = group;
    }
  }
  out["memory"] = forecast.memory.empty() ? Json(nullptr) : MemoryJson(forecast.memory[rank.pp()]);
  return Dump(out);
}

std::string ToJson(const v1::Plan& plan, const Forecast& forecast,
                   const std::vector<LayoutRow>& rows) {
  Json out = {
      {"world", plan.world()}, {"device_memory", DeviceJson(forecast)}, {"layouts", Json::array()}};
  for (const LayoutRow& row : rows) out["layouts"].push_back(RowJson(row));
  return Dump(out);
}

}  // namespace muster::plan
