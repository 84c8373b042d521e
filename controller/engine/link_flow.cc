#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "controller/engine/flows.h"
#include "controller/engine/text.h"

namespace muster::engine {
namespace {

void LostDuringRun(Context& c, JobRun& job, NodeRun& node, const absl::Status& why, bool was_up) {
  if (!was_up || node.end) return;
  const std::string& host = node.host.host();
  if (job.state == v1::JOB_STATE_STOPPING) {
    c.Emit(job, "node",
           absl::StrCat("lost the link to ", host, " (", std::string(why.message()),
                        ") while stopping"),
           "warning", host);
    return;
  }
  c.Emit(job, "node",
         absl::StrCat("lost the link to ", host, " (", std::string(why.message()),
                      "); its ranks run on, dialling again for ",
                      c.state().limits.lost.count() / 1000.0, " s"),
         "warning", host);
  c.StartTimer(job, TimerKind::kLost, c.state().limits.lost, host);
}

}  // namespace

void OnLinkUp(Context& c, const LinkUp& event) {
  const auto found = c.state().links.find(event.host);
  if (found == c.state().links.end()) return;
  Link& link = found->second;
  if (link.state == v1::LINK_STATE_UP) {  // the same worker, which has found its devices by now
    link.hello = event.hello;
    return;
  }
  const bool back = link.state == v1::LINK_STATE_LOST;
  if (!c.MoveLink(link, LinkInput::kUp, absl::StrCat("up, musterd ", event.hello.version())))
    return;
  link.hello = event.hello;
  link.error.clear();
  const bool pushed = std::exchange(link.pushing, false);
  for (auto& [id, job] : c.state().jobs) {
    const auto index = FindNode(job, event.host);
    if (job.forgotten || !index) continue;
    NodeRun& node = job.nodes[*index];
    switch (job.state) {
      case v1::JOB_STATE_QUEUED:
        break;
      case v1::JOB_STATE_PLANNING:
      case v1::JOB_STATE_PREFLIGHT:
        if (pushed) ++job.pushes.done;
        OnLinkUpInChecks(c, job, node);
        break;
      default:
        c.CancelTimer(job, TimerKind::kLost, event.host);
        if (back && !node.end) {
          c.Emit(job, "node", absl::StrCat("the link to ", event.host, " is up again"), "note",
                 event.host);
        }
        c.SendWish(job, node);
        break;
    }
  }
  for (auto& [id, check] : c.state().checks) {
    const auto index = FindNode(check, event.host);
    if (!check.forgotten && index) OnLinkUpInChecks(c, check, check.nodes[*index]);
  }
}

void OnLinkLost(Context& c, const LinkLost& event) {
  const auto found = c.state().links.find(event.host);
  if (found == c.state().links.end()) return;
  Link& link = found->second;
  const bool was_up = link.state == v1::LINK_STATE_UP;
  const std::string error = Printable(std::string(event.why.message()));
  const bool pushed = std::exchange(link.pushing, false);
  if (!c.MoveLink(link, LinkInput::kLost, error)) return;
  link.error = error;
  for (auto& [id, job] : c.state().jobs) {
    const auto index = FindNode(job, event.host);
    if (job.forgotten || !index || IsTerminal(job.state)) continue;
    NodeRun& node = job.nodes[*index];
    node.reached =
        node.reached && job.state != v1::JOB_STATE_PREPARING;  // asked again when it is back
    if (job.state == v1::JOB_STATE_PLANNING || job.state == v1::JOB_STATE_PREFLIGHT) {
      if (pushed) --job.pushes.begun;  // begun anew when it asks again
      OnLinkLostInChecks(c, job, node, event.why, was_up);
    } else if (job.state != v1::JOB_STATE_QUEUED) {
      LostDuringRun(c, job, node, event.why, was_up);
    }
  }
  for (auto& [id, check] : c.state().checks) {
    const auto index = FindNode(check, event.host);
    if (!check.forgotten && index)
      OnLinkLostInChecks(c, check, check.nodes[*index], event.why, was_up);
  }
}

void OnLostTimeout(Context& c, JobRun& job, const std::string& host) {
  const auto index = FindNode(job, host);
  const bool runs = job.state == v1::JOB_STATE_PREPARING || job.state == v1::JOB_STATE_STARTING ||
                    job.state == v1::JOB_STATE_RUNNING;
  if (!index || !runs || c.IsUp(host) || job.nodes[*index].end) return;
  NodeRun& node = job.nodes[*index];
  const std::string& error = c.state().links[host].error;
  node.unverified = true;
  node.unverified_why = absl::StrCat("it can't be reached (", error, ")");
  Break(c, job,
        {v1::CAUSE_NODE_LOST,
         absl::StrCat("the link to ", host, " was broken for more than ",
                      c.state().limits.lost.count() / 1000.0, " s (", error, ")"),
         host});
}

}  // namespace muster::engine
