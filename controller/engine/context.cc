#include "controller/engine/context.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "controller/engine/rank_spec.h"
#include "controller/engine/stage_flow.h"
#include "controller/engine/text.h"

namespace muster::engine {
namespace {

void SetDuration(google::protobuf::Duration& out, milliseconds value) {
  out.set_seconds(value.count() / 1000);
  out.set_nanos(static_cast<int32_t>(value.count() % 1000 * 1'000'000));
}

// Adds the hosts on which the jobs have something left to do.
void AddNeeded(const std::map<uint64_t, JobRun>& jobs,
               std::unordered_set<std::string_view>& hosts) {
  for (const auto& [id, job] : jobs) {
    if (job.forgotten || job.state == v1::JOB_STATE_QUEUED) continue;
    for (const NodeRun& node : job.nodes) hosts.insert(node.host.host());
  }
}

// A link that is up stays for the next job.
bool MayBeReleased(const Link& link) {
  return link.state == v1::LINK_STATE_LOST || link.state == v1::LINK_STATE_CONNECTING;
}

// What of a hostfile's line says how the host is reached.
std::string WayTo(const v1::Host& host) {
  v1::Host way = host;
  way.clear_slots();
  way.clear_max_slots();
  way.clear_line();
  way.clear_gpus();
  way.clear_type();
  way.clear_spare();
  way.clear_iface();
  return way.SerializeAsString();
}

}  // namespace

bool Context::Advance(JobRun& job, JobInput input, std::string_view text) {
  const auto next = Next(job.state, input);
  if (!next.ok()) {
    ReportIllegal(&job, std::string(next.status().message()));
    return false;
  }
  job.state = *next;
  const bool failed = job.state == v1::JOB_STATE_FAILED;
  Emit(job, "state", text, failed ? "error" : "note");
  Persist(job);
  return true;
}

void Context::Emit(JobRun& job, std::string_view kind, std::string_view text,
                   std::string_view severity, std::string_view host, std::optional<uint32_t> rank) {
  if (job.check_only) return;  // told in one piece at its end
  v1::JobEvent event;
  event.set_sequence(++job.last_sequence);
  event.set_time_ns(now_ns_);
  event.set_kind(std::string(kind));
  event.set_text(absl::StrReplaceAll(Printable(text), {{"\n", "; "}}));
  event.set_severity(std::string(severity));
  event.set_host(std::string(host));
  if (kind == "state") event.set_state(job.state);
  if (rank) event.set_rank(*rank);
  Do(engine::Emit{job.id, std::move(event)});
}

void Context::ReportIllegal(const JobRun* job, std::string_view message) {
  std::string text(message);
  if (job != nullptr) text = absl::StrCat("job ", job->id, ": ", text);
  Do(engine::ReportIllegal{std::move(text)});
}

void Context::StartTimer(const JobRun& job, TimerKind kind, milliseconds after, std::string host) {
  Do(engine::StartTimer{{job.id, kind, std::move(host)}, after});
}

void Context::CancelTimer(const JobRun& job, TimerKind kind, std::string host) {
  Do(engine::CancelTimer{{job.id, kind, std::move(host)}});
}

bool Context::IsUp(const std::string& host) const {
  const auto it = state_.links.find(host);
  return it != state_.links.end() && it->second.state == v1::LINK_STATE_UP;
}

void Context::Dial(const v1::Host& host, const std::string& default_transport) {
  Link& link = state_.links[host.host()];
  const bool same_way =
      link.default_transport == default_transport && WayTo(link.host) == WayTo(host);
  if (link.state == v1::LINK_STATE_UP && same_way) return;
  link.host = host;
  link.default_transport = default_transport;
  link.error.clear();
  if (MoveLink(link, LinkInput::kDial, "dialling")) Do(Connect{host, default_transport});
}

bool Context::MoveLink(Link& link, LinkInput input, std::string_view text) {
  const auto next = Next(link.state, input);
  if (!next.ok()) {
    ReportIllegal(nullptr,
                  absl::StrCat(link.host.host(), ": ", std::string(next.status().message())));
    return false;
  }
  // A link that fails to come back again and again is one line of history.
  const bool news = link.state != *next;
  link.state = *next;
  if (news) Do(NoteNode{link.host.host(), link.state, Printable(text)});
  return true;
}

void Context::ReleaseIdleLinks() {
  const bool any = std::any_of(state_.links.begin(), state_.links.end(),
                               [](const auto& entry) { return MayBeReleased(entry.second); });
  if (!any) return;
  std::unordered_set<std::string_view> needed;
  AddNeeded(state_.jobs, needed);
  AddNeeded(state_.checks, needed);
  for (auto& [host, link] : state_.links) {
    if (!MayBeReleased(link) || needed.contains(host) || StagingNeeds(state_, host)) continue;
    if (MoveLink(link, LinkInput::kRelease, "no job needs it")) Do(Disconnect{host});
  }
  // A name under which no worker has ever said hello was a slip, most likely.
  std::erase_if(state_.links, [](const auto& entry) {
    return entry.second.state == v1::LINK_STATE_GONE && entry.second.hello.version().empty();
  });
}

void Context::Wish(JobRun& job, NodeRun& node, v1::Goal goal) {
  ++node.generation;
  node.goal = goal;
  node.reached = false;
  Persist(job);
  SendWish(job, node);
}

void Context::SendWish(const JobRun& job, const NodeRun& node) {
  if (node.goal == v1::GOAL_UNSPECIFIED || !IsUp(node.host.host())) return;
  v1::AttachRequest message;
  v1::Desired& desired = *message.mutable_desired();
  *desired.mutable_id() = MakeAttemptId(state_, job);
  desired.set_generation(node.generation);
  desired.set_goal(node.goal);
  if (node.goal == v1::GOAL_PREPARED) {
    const auto index = FindNode(job, node.host.host());
    for (auto& spec : NodeRankSpecs(state_, job, *index)) *desired.add_ranks() = std::move(spec);
    desired.set_stage_id(job.spec.staged().content_id());
    if (job.spec.logs().has_quota()) *desired.mutable_log_quota() = job.spec.logs().quota();
  }
  if (node.goal == v1::GOAL_STOPPED) {
    SetDuration(*desired.mutable_grace(), node.grace);
    desired.set_stop_reason(node.stop_reason);
    desired.set_save_signal(job.save_signal);
  }
  Do(Send{node.host.host(), std::move(message)});
}

}  // namespace muster::engine
