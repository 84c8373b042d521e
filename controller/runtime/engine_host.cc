#include "controller/runtime/engine_host.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/log.h"
#include "common/version.h"
#include "controller/engine/rank_spec.h"
#include "controller/plan/render.h"
#include "controller/runtime/documents.h"
#include "controller/runtime/records.h"
#include "controller/why/render.h"

namespace muster::runtime {
namespace {

constexpr std::chrono::seconds kCommitRetry(1);

store::JobRecord WithRanks(const engine::JobRun& job) {
  store::JobRecord record = ToRecord(job);
  record.ranks = job.ranks;
  return record;
}

}  // namespace

Owner OwnerOf(const v1::JobSpec& spec) {
  return {spec.submitter_uid(), spec.submitter_gid()};
}

// One action: what depends on the state is taken from it now, the rest happens in Flush().
struct EngineHost::Recorder {
  EngineHost& host;
  int64_t now_ns;

  void Later(std::function<void()> effect) const { host.effects_.push_back(std::move(effect)); }
  const engine::JobRun& Job(uint64_t id) const { return host.state_.jobs.at(id); }

  void operator()(const engine::PersistJob& action) const { host.touched_.insert(action.job); }
  void operator()(const engine::PersistRank& action) const {
    const engine::JobRun& job = Job(action.job);
    host.unsaved_.ranks[{action.job, action.rank}] = {job.id, job.attempt, job.ranks[action.rank]};
  }
  void operator()(const engine::Emit& action) const {
    host.unsaved_.events.push_back({action.job, action.event});
    host.stories_[action.job].push_back(action.event);
    host.news_[action.job].push_back(action.event);
    const engine::JobRun& job = Job(action.job);
    host.world_.output.Append(job.output_dir + "/events.jsonl", EventLine(action.event),
                              OwnerOf(job.spec));
  }
  void operator()(const engine::RememberChecks& action) const {
    for (const v1::NodeCheck& check : action.nodes) {
      v1::NodeCheck& kept = host.unsaved_.node_checks[check.host()] = check;
      kept.clear_hello();  // the link has it
    }
  }
  void operator()(const engine::CheckDone& action) const {
    Later([&h = host, action] {
      const auto it = h.checks_.find(action.id);
      if (it == h.checks_.end()) return;
      const CheckCallback callback = std::move(it->second);
      h.checks_.erase(it);
      callback(action.response);
    });
  }
  void operator()(const engine::SendPiece& action) const {
    Later(
        [&h = host, action] { h.world_.stagings.SendPiece(action.id, action.host, action.piece); });
  }
  void operator()(const engine::StageNews& action) const {
    Later([&h = host, action] { h.world_.stagings.Tell(action.id, action.response, action.why); });
  }
  void operator()(const engine::NoteNode& action) const {
    host.unsaved_.node_history.push_back({action.host, now_ns, action.state, action.text});
  }
  void operator()(const engine::Forget& action) const {
    host.unsaved_.closed.push_back(action.job);
    host.forgotten_.push_back(action.job);
  }
  void operator()(const engine::Connect& action) const {
    Later([&h = host, action] {
      const auto status = h.world_.links.Connect(action.host, action.default_transport);
      if (!status.ok()) h.Handle(engine::LinkLost{action.host.host(), status});
    });
  }
  void operator()(const engine::Disconnect& action) const {
    Later([&h = host, action] { h.world_.links.Disconnect(action.host); });
  }
  void operator()(const engine::Send& action) const {
    Later([&h = host, action] { h.world_.links.Send(action.host, action.message); });
  }
  void operator()(const engine::StartTimer& action) const {
    Later([&h = host, action] { h.world_.loop.StartTimer(action.key, action.after); });
  }
  void operator()(const engine::CancelTimer& action) const {
    Later([&h = host, action] { h.world_.loop.CancelTimer(action.key); });
  }
  void operator()(const engine::OpenLogs& action) const {
    const engine::JobRun& job = Job(action.job);
    const Owner owner = OwnerOf(job.spec);
    logs::AttemptFiles files;
    files.id = engine::MakeAttemptId(host.state_, job);
    files.plan = *job.plan;
    files.output_dir = job.output_dir;
    files.uid = owner.uid;
    files.gid = owner.gid;
    files.run_id = engine::RunId(host.state_, job);
    files.rotate_bytes = job.spec.logs().rotate_bytes();
    for (const engine::NodeRun& node : job.nodes) {
      files.clock_offsets_ns.push_back(engine::SureClockOffset(node));
    }
    Later([&h = host, id = job.id, files = std::move(files)] { h.OpenLogs(id, files); });
  }
  void operator()(const engine::AbandonLogs& action) const {
    Later([&h = host, id = engine::MakeAttemptId(host.state_, Job(action.job)),
           name = action.host] { h.world_.logs.AbandonNode(id, name); });
  }
  void operator()(const engine::WritePlan& action) const {
    const engine::JobRun& job = Job(action.job);
    host.world_.output.Write(job.output_dir + "/plan.txt", plan::RenderText(*job.plan),
                             OwnerOf(job.spec));
  }
  void operator()(const engine::Finish& action) const {
    const engine::JobRun& job = Job(action.job);
    const v1::Job view = ToView(WithRanks(job));
    WriteWhy(view);
    host.finals_[action.job] = view;
    // Only after the commit: a controller that dies before it still needs them.
    Later([&h = host, id = action.job] { h.world_.secrets.Remove(id); });
  }
  void operator()(const engine::WriteWhy& action) const {
    WriteWhy(ToView(WithRanks(Job(action.job))));
  }
  void WriteWhy(const v1::Job& view) const {
    host.world_.output.WriteMade(
        view.output_dir() + "/why.txt", [view] { return why::Text(why::ExplainJob(view)); },
        OwnerOf(view.spec()));
  }
  void operator()(const engine::ReportIllegal& action) const { log::Error(action.message); }
};

store::Batch EngineHost::Unsaved::ToBatch() && {
  store::Batch batch;
  for (auto& [id, job] : jobs) batch.jobs.push_back(std::move(job));
  for (auto& [key, rank] : ranks) batch.ranks.push_back(std::move(rank));
  batch.events = std::move(events);
  batch.node_history = std::move(node_history);
  for (auto& [host, check] : node_checks) batch.node_checks.push_back(std::move(check));
  batch.closed = std::move(closed);
  return batch;
}

void EngineHost::Unsaved::TakeBack(store::Batch batch) {
  for (auto& job : batch.jobs) jobs.emplace(job.id, std::move(job));
  for (auto& rank : batch.ranks) {
    ranks.emplace(std::make_pair(rank.job, rank.status.rank()), std::move(rank));
  }
  events = std::move(batch.events);
  node_history = std::move(batch.node_history);
  for (auto& check : batch.node_checks) node_checks.emplace(check.host(), std::move(check));
  closed = std::move(batch.closed);
}

EngineHost::EngineHost(const World& world, const engine::Limits& limits) : world_(world) {
  state_.controller_id = world.store.controller_id();
  state_.version = kVersion;
  state_.limits = limits;
}

EngineHost::~EngineHost() {
  for (const auto& [id, callback] : checks_)
    callback(absl::UnavailableError("the controller is shutting down"));
}

void EngineHost::Handle(decltype(engine::Event::what) what) {
  const int64_t now_ns = world_.clock.RealtimeNs();
  engine::Step step = engine::Reduce(std::move(state_), {now_ns, std::move(what)});
  state_ = std::move(step.state);
  for (const auto& action : step.actions) std::visit(Recorder{*this, now_ns}, action);
  // The next event drops what is forgotten.
  std::erase_if(touched_, [this](uint64_t id) {
    const engine::JobRun& job = state_.jobs.at(id);
    if (job.forgotten) unsaved_.jobs[id] = ToRecord(job);
    return job.forgotten;
  });
}

void EngineHost::Flush() {
  do {
    const absl::Status status = Commit();
    for (const auto& callback : std::exchange(committed_, {})) callback(status);
    for (const auto& effect : std::exchange(effects_, {})) effect();
  } while (!effects_.empty() || !committed_.empty());
  TellWatchers();
}

absl::Status EngineHost::Commit() {
  for (const uint64_t job : std::exchange(touched_, {})) {
    unsaved_.jobs[job] = ToRecord(state_.jobs.at(job));
  }
  store::Batch batch = std::exchange(unsaved_, {}).ToBatch();
  absl::Status status = world_.store.Commit(batch);
  if (!status.ok()) {
    unsaved_.TakeBack(std::move(batch));
    // A full disk must not end running jobs: the engine goes on, and the rows wait for their time.
    if (!commit_failed_)
      log::Error(absl::StrCat(std::string(status.message()), "; trying again every second"));
    world_.loop.WakeAfter(kCommitRetry);
  }
  commit_failed_ = !status.ok();
  return status;
}

void EngineHost::TellWatchers() {
  for (const auto& [job, events] : std::exchange(news_, {})) {
    std::optional<v1::Job> final;
    if (const auto it = finals_.find(job); it != finals_.end()) final = std::move(it->second);
    world_.watchers.Deliver(job, events, final);
  }
  finals_.clear();
  for (const uint64_t job : std::exchange(forgotten_, {})) stories_.erase(job);
}

void EngineHost::OpenLogs(uint64_t job, const logs::AttemptFiles& files) {
  const auto status = world_.logs.Open(files);
  if (!status.ok()) {
    Handle(engine::InternalError{
        job, absl::StrCat("open the log files: ", std::string(status.message()))});
  } else if (world_.logs.Complete(files.id)) {
    Handle(engine::LogsComplete{files.id});
  }
}

const std::vector<v1::JobEvent>* EngineHost::Story(uint64_t job) const {
  const auto it = stories_.find(job);
  return it == stories_.end() ? nullptr : &it->second;
}

void EngineHost::SetStory(const engine::JobRun& job, std::vector<v1::JobEvent> story) {
  std::string lines;
  for (const auto& event : story) lines += EventLine(event);
  world_.output.Write(job.output_dir + "/events.jsonl", std::move(lines), OwnerOf(job.spec));
  stories_[job.id] = std::move(story);
}

std::optional<v1::Job> EngineHost::View(uint64_t job) const {
  const auto it = state_.jobs.find(job);
  if (it == state_.jobs.end()) return std::nullopt;
  return ToView(WithRanks(it->second));
}

}  // namespace muster::runtime
