#include "controller/plan/environment.h"

#include <absl/strings/ascii.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "common/status.h"
#include "controller/hostfile/host_word.h"
#include "controller/plan/planner.h"

namespace muster::plan {
namespace {

// What a rank relies on: a job may not change these. TORCHELASTIC_ERROR_FILE is set by the worker.
constexpr std::array<std::string_view, 16> kContract = {
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_ERROR_FILE",
};
constexpr std::string_view kOwnPrefix = "MUSTER_";
constexpr std::array<std::string_view, 2> kVisibleDevices = {"CUDA_VISIBLE_DEVICES",
                                                             "MUSA_VISIBLE_DEVICES"};

template <size_t N>
bool IsIn(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool AnyGpusList(const v1::Inventory& inventory) {
  return std::any_of(inventory.hosts().begin(), inventory.hosts().end(),
                     [](const v1::Host& host) { return host.gpus_size() > 0; });
}

absl::Status CheckVariable(const v1::EnvVar& variable, std::string_view table, bool gpus_list) {
  const std::string& name = variable.name();
  if (!IsVariableName(name)) {
    return absl::InvalidArgumentError(
        fmt::format("{} '{}': not a name for an environment variable", table, name));
  }
  if (variable.value().find('\0') != std::string::npos) {
    return absl::InvalidArgumentError(fmt::format("{} {}: the value has a NUL byte", table, name));
  }
  if (IsSetByMuster(name)) {
    return absl::InvalidArgumentError(
        fmt::format("{} {}: set by muster for each rank, a job may not change it", table, name));
  }
  if (gpus_list && IsIn(name, kVisibleDevices)) {
    return absl::InvalidArgumentError(fmt::format(
        "{} {}: the hostfile's gpus= lists already say it; remove one of the two", table, name));
  }
  return absl::OkStatus();
}

// The devices of a node's ranks, "7,5,6": local rank i is device number i of this list, as after
// torchrun.
std::string DeviceList(const v1::NodePlan& node) {
  std::string out;
  const auto count = std::min<int>(node.host().gpus_size(), static_cast<int>(node.num_ranks()));
  for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + std::to_string(node.host().gpus(i));
  return out;
}

using Variables = std::map<std::string, std::string>;

// Good defaults that the job may override.
void AddDefaults(const v1::Plan& plan, const v1::NodePlan& node, Variables& out) {
  out["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1";
  out["PYTHONUNBUFFERED"] = "1";  // logs are followed live through pipes and files
  if (node.num_ranks() > 1) out["OMP_NUM_THREADS"] = "1";
  // What the hostfile says, else what preflight found by the route to the head.
  const std::string& iface = node.host().has_iface() ? node.host().iface() : node.iface();
  if (!iface.empty()) {
    out["GLOO_SOCKET_IFNAME"] = iface;
    out["NCCL_SOCKET_IFNAME"] = "=" + iface;  // '=': this name, not names that begin so
  } else if (hostfile::IsLoopbackHost(plan.nodes(0).data_addr())) {
    // All "hosts" are this machine. Without it Gloo listens on what the machine's own name resolves
    // to.
    out["GLOO_SOCKET_IFNAME"] = "lo";
  }
  if (const std::string devices = DeviceList(node); !devices.empty()) {
    out["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // the numbering of nvidia-smi, which hostfiles use
    for (const std::string_view name : kVisibleDevices) out[std::string(name)] = devices;
  }
}

void AddContract(const v1::Plan& plan, const v1::RankPlan& me, const v1::NodePlan& node,
                 const Launch& launch, Variables& out) {
  out["RANK"] = out["ROLE_RANK"] = std::to_string(me.rank());
  out["LOCAL_RANK"] = std::to_string(me.local_rank());
  out["WORLD_SIZE"] = out["ROLE_WORLD_SIZE"] = std::to_string(plan.world());
  out["LOCAL_WORLD_SIZE"] = std::to_string(node.num_ranks());
  out["GROUP_RANK"] = std::to_string(me.node());
  out["GROUP_WORLD_SIZE"] = std::to_string(plan.nodes_size());
  out["ROLE_NAME"] = "default";
  out["MASTER_ADDR"] = plan.nodes(0).data_addr();
  out["MASTER_PORT"] = std::to_string(launch.master_port);
  out["TORCHELASTIC_RESTART_COUNT"] = std::to_string(launch.attempt);
  out["TORCHELASTIC_MAX_RESTARTS"] = "0";
  out["TORCHELASTIC_RUN_ID"] = launch.run_id;
  // No agent hosts a store here: rank 0 listens on MASTER_PORT itself.
  out["TORCHELASTIC_USE_AGENT_STORE"] = "False";
}

void AddCoordinates(const v1::Plan& plan, const v1::RankPlan& me, const v1::NodePlan& node,
                    const Launch& launch, Variables& out) {
  const auto number = [&](const char* name, uint32_t value) { out[name] = std::to_string(value); };
  number("MUSTER_RANK", me.rank());
  number("MUSTER_LOCAL_RANK", me.local_rank());
  number("MUSTER_NODE_RANK", me.node());
  number("MUSTER_WORLD", plan.world());
  number("MUSTER_NNODES", static_cast<uint32_t>(plan.nodes_size()));
  number("MUSTER_TP", plan.tp());
  number("MUSTER_PP", plan.pp());
  number("MUSTER_CP", plan.cp());
  number("MUSTER_DP", plan.dp());
  number("MUSTER_VP", plan.vp());
  number("MUSTER_TP_RANK", me.tp());
  number("MUSTER_PP_RANK", me.pp());
  number("MUSTER_CP_RANK", me.cp());
  number("MUSTER_DP_RANK", me.dp());
  if (plan.global_batch() > 0) {
    number("MUSTER_MBS", plan.micro_batch());
    number("MUSTER_NUM_MICROBATCHES", plan.num_microbatches());
    number("MUSTER_GBS", plan.global_batch());
  }
  number("MUSTER_ATTEMPT", launch.attempt);
  out["MUSTER_JOB_NAME"] = plan.name();
  out["MUSTER_HOST"] = node.host().host();
  out["MUSTER_HEAD_ADDR"] = plan.nodes(0).data_addr();
  if (!launch.last_checkpoint.empty()) out["MUSTER_LAST_CHECKPOINT"] = launch.last_checkpoint;
}

}  // namespace

bool IsVariableName(std::string_view name) {
  const auto allowed = [](char c) {
    return c != '=' && absl::ascii_isgraph(static_cast<unsigned char>(c));
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed) &&
         !absl::ascii_isdigit(static_cast<unsigned char>(name[0]));
}

bool IsSetByMuster(std::string_view name) {
  return IsIn(name, kContract) || name.starts_with(kOwnPrefix);
}

absl::Status CheckEnvironment(const v1::JobSpec& spec) {
  const bool gpus_list = AnyGpusList(spec.inventory());
  std::set<std::string_view> names;
  for (const auto* table : {&spec.env(), &spec.secrets()}) {
    const std::string_view label = table == &spec.env() ? "environment" : "secret";
    for (const v1::EnvVar& variable : *table) {
      MUSTER_RETURN_IF_ERROR(CheckVariable(variable, label, gpus_list));
      if (!names.insert(variable.name()).second) {
        return absl::InvalidArgumentError(
            fmt::format("{} {}: the variable is given twice", label, variable.name()));
      }
    }
  }
  return absl::OkStatus();
}

std::vector<v1::EnvVar> RankEnvironment(const v1::JobSpec& spec, const v1::Plan& plan,
                                        uint32_t rank, const Launch& launch) {
  const v1::RankPlan& me = plan.ranks(static_cast<int>(rank));
  const v1::NodePlan& node = plan.nodes(static_cast<int>(me.node()));
  Variables variables;
  AddDefaults(plan, node, variables);
  for (const v1::EnvVar& variable : spec.env()) variables[variable.name()] = variable.value();
  for (const v1::EnvVar& variable : spec.secrets()) variables[variable.name()] = variable.value();
  AddContract(plan, me, node, launch, variables);
  AddCoordinates(plan, me, node, launch, variables);

  std::vector<v1::EnvVar> out;
  out.reserve(variables.size());
  for (const auto& [name, value] : variables) {
    v1::EnvVar& variable = out.emplace_back();
    variable.set_name(name);
    variable.set_value(value);
  }
  return out;
}

}  // namespace muster::plan
