#include "controller/engine/reduce.h"

#include <utility>

#include "controller/engine/context.h"
#include "controller/engine/flows.h"
#include "controller/engine/stage_flow.h"

namespace muster::engine {
namespace {

void OnTimer(Context& c, const TimerKey& key) {
  if (key.kind == TimerKind::kStage) {
    OnStageTick(c, key.job);
    return;
  }
  JobRun* const found = FindRun(c.state(), key.job);
  if (found == nullptr) return;
  JobRun& job = *found;
  switch (key.kind) {
    case TimerKind::kConnect:
    case TimerKind::kProbe:
      OnChecksTimeout(c, job, key.kind);
      break;
    case TimerKind::kPrepare:
    case TimerKind::kStart:
      OnLaunchTimeout(c, job, key.kind);
      break;
    case TimerKind::kLost:
      OnLostTimeout(c, job, key.host);
      break;
    case TimerKind::kStop:
      OnStopTimeout(c, job);
      break;
    case TimerKind::kStage:
      break;  // dealt with above
  }
}

struct Dispatch {
  Context& c;
  void operator()(const Submitted& event) const { OnSubmitted(c, event); }
  void operator()(const CheckRequested& event) const { OnCheckRequested(c, event); }
  void operator()(const LinkUp& event) const {
    const bool was_up = c.IsUp(event.host);  // then only its devices are news
    OnLinkUp(c, event);
    if (!was_up && c.IsUp(event.host)) OnLinkUpInStaging(c, event.host);
  }
  void operator()(const LinkLost& event) const {
    OnLinkLost(c, event);
    OnLinkLostInStaging(c, event.host, event.why);
  }
  void operator()(const PushBegan& event) const { OnPushBegan(c, event); }
  void operator()(const ProbeAnswered& event) const { OnProbeAnswered(c, event); }
  void operator()(const NodeObserved& event) const { OnNodeObserved(c, event); }
  void operator()(const TimerFired& event) const { OnTimer(c, event.key); }
  void operator()(const StopRequested& event) const { OnStopRequested(c, event); }
  void operator()(const LogsComplete& event) const { OnLogsComplete(c, event); }
  void operator()(const InternalError& event) const { OnInternalError(c, event); }
  void operator()(const Remark& event) const { OnRemark(c, event); }
  void operator()(const Recovered& event) const { OnRecovered(c, event); }
  void operator()(const StageRequested& event) const { OnStageRequested(c, event); }
  void operator()(const StageReported& event) const { OnStageReported(c, event); }
  void operator()(const PieceSent& event) const { OnPieceSent(c, event); }
  void operator()(const StageBroken& event) const { OnStageBroken(c, event); }
};

}  // namespace

Step Reduce(State state, const Event& event) {
  Step step{std::move(state), {}};
  const auto forgotten = [](const auto& entry) { return entry.second.forgotten; };
  std::erase_if(step.state.jobs, forgotten);
  std::erase_if(step.state.checks, forgotten);
  Context context(step.state, step.actions, event.time_ns);
  std::visit(Dispatch{context}, event.what);
  // A job that waited for an older one's ranks goes on when these are gone.
  for (auto& [id, job] : step.state.jobs) {
    if (job.state == v1::JOB_STATE_PREFLIGHT) ContinueChecks(context, job);
  }
  Schedule(context);
  context.ReleaseIdleLinks();
  return step;
}

}  // namespace muster::engine
