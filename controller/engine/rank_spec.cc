#include "controller/engine/rank_spec.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "controller/plan/planner.h"
#include "controller/stage/mapping.h"

namespace muster::engine {
namespace {

// What one message to a node can hold (worker.proto: 1 MiB), with some room for the rest of it.
constexpr size_t kMaxNodeSpecBytes = (size_t{1} << 20) - 4096;

void Add(v1::RankSpec& spec, std::string_view name, std::string value) {
  v1::EnvVar& variable = *spec.add_env();
  variable.set_name(std::string(name));
  variable.set_value(std::move(value));
}

}  // namespace

std::string RunId(const State& state, const JobRun& job) {
  return absl::StrCat(state.controller_id.substr(0, 8), "-", job.id, "-", job.attempt);
}

absl::StatusOr<v1::RankSpec> MakeAttemptRankSpec(const State& state, const JobRun& job,
                                                 uint32_t rank) {
  plan::Launch launch;
  launch.attempt = job.attempt;
  launch.master_port = job.master_port;
  launch.run_id = RunId(state, job);
  MUSTER_ASSIGN_OR_RETURN(v1::RankSpec spec, plan::MakeRankSpec(job.spec, *job.plan, rank, launch));
  Add(spec, "MUSTER_JOB_ID", absl::StrCat(job.id));
  Add(spec, "MUSTER_CONTROLLER_ID", state.controller_id);
  if (job.spec.has_staged()) {
    const auto node = static_cast<int>(job.plan->ranks(static_cast<int>(rank)).node());
    const auto link = state.links.find(job.plan->nodes(node).host().host());
    // Without a link this is a trial: nothing is sent.
    const v1::WorkerHello hello =
        link == state.links.end() ? v1::WorkerHello() : link->second.hello;
    stage::MapRank(job.spec.staged(), stage::FolderOn(job.spec.staged(), hello), spec);
  }
  return spec;
}

absl::Status ValidateRankSpecs(const State& state, const JobRun& job) {
  for (const auto& node : job.plan->nodes()) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < node.num_ranks(); ++i) {
      MUSTER_ASSIGN_OR_RETURN(const auto spec,
                              MakeAttemptRankSpec(state, job, node.first_rank() + i));
      bytes += spec.ByteSizeLong();
    }
    if (bytes <= kMaxNodeSpecBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "command and environment of the ", node.num_ranks(), " ranks on ", node.host().host(),
        " take ", bytes / 1024, " KiB, at most ", kMaxNodeSpecBytes / 1024,
        " KiB are possible; put long arguments into a file"));
  }
  return absl::OkStatus();
}

std::vector<v1::RankSpec> NodeRankSpecs(const State& state, const JobRun& job, size_t index) {
  std::vector<v1::RankSpec> specs;
  const auto& node = job.plan->nodes(static_cast<int>(index));
  for (uint32_t i = 0; i < node.num_ranks(); ++i) {
    auto spec = MakeAttemptRankSpec(state, job, node.first_rank() + i);
    if (spec.ok()) specs.push_back(*std::move(spec));
  }
  return specs;
}

}  // namespace muster::engine
