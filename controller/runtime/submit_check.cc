#include "controller/runtime/submit_check.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status.h"
#include "common/tree.h"
#include "controller/engine/asking.h"
#include "controller/engine/rank_spec.h"
#include "controller/engine/state.h"
#include "controller/plan/job_name.h"
#include "controller/plan/planner.h"
#include "controller/preflight/checks.h"

namespace muster::runtime {
namespace {

constexpr int64_t kMaxGraceSeconds = int64_t{7} * 24 * 3600;

constexpr int64_t kMaxCheckTimeoutSeconds = 3600;

absl::Status CheckPreflight(const v1::JobSpec& spec) {
  if (spec.has_port_range() &&
      (spec.port_range().first() == 0 || spec.port_range().last() > 65535 ||
       spec.port_range().first() > spec.port_range().last())) {
    return absl::InvalidArgumentError(absl::StrCat("port range ", spec.port_range().first(), "-",
                                                   spec.port_range().last(),
                                                   ": first to last, within 1 to 65535"));
  }
  if (spec.has_check_timeout() &&
      (spec.check_timeout().seconds() < 0 || spec.check_timeout().nanos() < 0 ||
       spec.check_timeout().seconds() > kMaxCheckTimeoutSeconds ||
       (spec.check_timeout().seconds() == 0 && spec.check_timeout().nanos() == 0))) {
    return absl::InvalidArgumentError(absl::StrCat("a time-out of ", spec.check_timeout().seconds(),
                                                   " s for preflight: more than 0 s, at most "
                                                   "an hour"));
  }
  if (spec.inventory().hosts().empty()) {
    return absl::InvalidArgumentError("no hosts: give --hostfile FILE or --host HOST[:SLOTS],...");
  }
  return preflight::ValidateSkip({spec.skip_checks().begin(), spec.skip_checks().end()});
}

absl::Status CheckShape(const v1::JobSpec& spec) {
  if (spec.command().empty() || spec.command(0).empty()) {
    return absl::InvalidArgumentError(
        "the job has no command; give it after `--`, or in the recipe's [job]");
  }
  if (!spec.working_dir().starts_with('/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("working folder '", spec.working_dir(), "': an absolute path is needed"));
  }
  if (!spec.output_root().starts_with('/')) {
    return absl::InvalidArgumentError(
        absl::StrCat("output folder '", spec.output_root(), "': an absolute path is needed"));
  }
  if (spec.has_staged() && !IsContentId(spec.staged().content_id())) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", spec.staged().content_id(), "' is no content id of a staged tree"));
  }
  MUSTER_RETURN_IF_ERROR(CheckPreflight(spec));
  return spec.has_grace() ? CheckGrace(spec.grace()) : absl::OkStatus();
}

// Templates in argv and env: a trial with values that only a start knows.
absl::Status CheckTemplates(const v1::JobSpec& spec, const v1::Plan& plan) {
  engine::JobRun trial;
  trial.spec = spec;
  trial.plan = plan;
  trial.master_port = 1;
  return engine::ValidateRankSpecs(engine::State{}, trial);
}

}  // namespace

absl::Status CheckGrace(const google::protobuf::Duration& grace) {
  if (grace.seconds() >= 0 && grace.nanos() >= 0 && grace.seconds() <= kMaxGraceSeconds)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("grace of ", grace.seconds(), " s: between 0 s and 7 days is possible"));
}

absl::StatusOr<CheckedSpec> CheckCheck(const v1::JobSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckPreflight(spec));
  CheckedSpec checked;
  auto plan = engine::PlanFor(spec);
  if (plan.ok()) {
    checked.plan = *std::move(plan);
  } else if (plan.status().code() != absl::StatusCode::kFailedPrecondition) {
    return plan.status();
  }
  return checked;
}

absl::StatusOr<CheckedSpec> CheckSubmit(const v1::JobSpec& spec) {
  MUSTER_RETURN_IF_ERROR(CheckShape(spec));
  CheckedSpec checked;
  auto plan = plan::MakePlan(spec);
  if (plan.ok()) {
    MUSTER_RETURN_IF_ERROR(CheckTemplates(spec, *plan));
    checked.name = plan->name();
    checked.plan = *std::move(plan);
    return checked;
  }
  // Slots that only the nodes know: the job is planned once they have said hello.
  if (plan.status().code() != absl::StatusCode::kFailedPrecondition) return plan.status();
  checked.name = spec.name().empty() ? plan::CommandName(spec) : spec.name();
  return checked;
}

}  // namespace muster::runtime
