#include "controller/plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/status.h"
#include "controller/plan/device_memory.h"
#include "controller/plan/environment.h"
#include "controller/plan/job_name.h"
#include "controller/plan/model_shape.h"
#include "controller/plan/model_warnings.h"
#include "controller/plan/nodes.h"
#include "controller/plan/sizes.h"
#include "controller/plan/templates.h"
#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

absl::Status CheckCommand(const v1::JobSpec& spec) {
  if (spec.command_size() == 0 || spec.command(0).empty()) {
    return absl::InvalidArgumentError(
        "no command: give a recipe with [job] command, or -- COMMAND ARGS...");
  }
  if (spec.flags_size() > 0 && !IsTrainer(spec)) {
    return absl::InvalidArgumentError(fmt::format(
        "[flags] is for muster-train; {} takes its arguments in [job] command", spec.command(0)));
  }
  for (const std::string& word : spec.command()) {
    if (word.find('\0') != std::string::npos) {
      return absl::InvalidArgumentError("the command has a NUL byte");
    }
    MUSTER_RETURN_IF_ERROR(CheckTemplates(word));
  }
  for (const v1::Flag& flag : spec.flags()) {
    for (const std::string& value : flag.values()) MUSTER_RETURN_IF_ERROR(CheckTemplates(value));
  }
  return absl::OkStatus();
}

absl::Status MisfitError(const Misfit& misfit, uint32_t world, const v1::Parallel& parallel,
                         const std::vector<v1::NodePlan>& nodes, const ModelShape* model) {
  std::string text = misfit.text + ".";
  const Suggestions suggestions = Suggest(world, parallel, misfit.kind, model);
  if (const std::string more = SuggestionText(world, parallel, suggestions); !more.empty()) {
    text += " " + more;
  }
  if (misfit.kind != Misfit::Kind::kOther) {
    std::string parts;
    for (const std::string& part : UsableParts(nodes, parallel, model)) {
      parts += (parts.empty() ? " Parts of these hosts that fit: " : ", ") + part;
    }
    if (!parts.empty()) text += parts + ".";
  }
  return absl::InvalidArgumentError(text);
}

// What the slots are called: devices where that is known, and for a trainer that does not say CPU.
std::string_view DeviceWord(const v1::JobSpec& spec) {
  const bool listed = std::any_of(
      spec.inventory().hosts().begin(), spec.inventory().hosts().end(),
      [](const v1::Host& host) { return host.gpus_size() > 0 || MemoryOfType(host.type()); });
  const bool trainer = IsTrainer(spec) && FlagReader(spec).Text("device") != "cpu";
  return listed || trainer ? "GPU" : "slot";
}

void SetSizes(const Sizes& sizes, std::string_view device, v1::Plan& plan) {
  plan.set_world(sizes.world);
  plan.set_tp(sizes.tp);
  plan.set_pp(sizes.pp);
  plan.set_cp(sizes.cp);
  plan.set_vp(sizes.vp);
  plan.set_dp(sizes.dp);
  plan.set_micro_batch(sizes.micro_batch);
  plan.set_num_microbatches(sizes.num_microbatches);
  plan.set_global_batch(sizes.global_batch);
  for (std::string& line : Arithmetic(sizes, device)) plan.add_arithmetic(std::move(line));
}

}  // namespace

absl::StatusOr<v1::Plan> MakePlan(const v1::JobSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckCommand(spec));
  MUSTER_RETURN_IF_ERROR(CheckEnvironment(spec));
  if (!spec.name().empty()) MUSTER_RETURN_IF_ERROR(CheckJobName(spec.name()));
  v1::Parallel given = spec.parallel();
  if (IsTrainer(spec)) {
    MUSTER_ASSIGN_OR_RETURN(given, TrainerParallel(spec));
    MUSTER_RETURN_IF_ERROR(CheckModelFlags(spec));
  }
  const v1::Parallel parallel = WithDefaults(given);
  MUSTER_ASSIGN_OR_RETURN(const std::vector<v1::NodePlan> nodes, SelectNodes(spec));
  const uint32_t world = World(nodes);
  // The planner knows the rules of its own trainer; for other programs they are warnings.
  const ModelReading reading = ReadModel(spec);
  const ModelShape* model = reading.shape ? &*reading.shape : nullptr;
  const ModelShape* binding = IsTrainer(spec) ? model : nullptr;
  Sizes sizes;
  if (const auto misfit = Fit(world, parallel, &sizes, binding)) {
    return MisfitError(*misfit, world, parallel, nodes, binding);
  }

  v1::Plan plan;
  plan.set_name(JobName(spec, sizes));
  SetSizes(sizes, DeviceWord(spec), plan);
  plan.mutable_nodes()->Assign(nodes.begin(), nodes.end());
  PlaceRanks(plan);
  if (IsTrainer(spec)) {
    for (std::string& word : TrainerArgv(spec, sizes)) plan.add_argv(std::move(word));
  } else {
    *plan.mutable_argv() = spec.command();
  }
  *plan.mutable_env() = spec.env();
  for (std::string& warning : PlanWarnings(plan, spec.inventory())) {
    plan.add_warnings(std::move(warning));
  }
  for (std::string& warning : ModelWarnings(spec, sizes, model)) {
    plan.add_warnings(std::move(warning));
  }
  return plan;
}

absl::StatusOr<v1::RankSpec> MakeRankSpec(const v1::JobSpec& spec, const v1::Plan& plan,
                                          uint32_t rank, const Launch& launch) {
  if (rank >= plan.world()) {
    return absl::InvalidArgumentError(
        fmt::format("rank {} is not in a plan of {} ranks", rank, plan.world()));
  }
  if (launch.master_port == 0 || launch.master_port > 65535) {
    return absl::InvalidArgumentError(fmt::format("bad master port {}", launch.master_port));
  }
  v1::RankSpec out;
  out.set_rank(rank);
  const v1::RankPlan& place = plan.ranks(static_cast<int>(rank));
  out.set_local_rank(place.local_rank());
  if (place.has_device() && spec.bind_to() != "none") out.set_numa_device(place.device());
  const TemplateValues values = ValuesFor(plan, rank, launch);
  for (const std::string& word : plan.argv()) out.add_argv(FillTemplates(word, values));
  for (v1::EnvVar& variable : RankEnvironment(spec, plan, rank, launch)) {
    *out.add_env() = std::move(variable);
  }
  out.set_working_dir(spec.working_dir());
  return out;
}

}  // namespace muster::plan
