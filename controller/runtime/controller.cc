#include "controller/runtime/controller.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "common/status.h"
#include "common/version.h"
#include "controller/engine/transitions.h"
#include "controller/plan/render.h"
#include "controller/runtime/documents.h"
#include "controller/runtime/records.h"
#include "controller/runtime/submit_check.h"

namespace muster::runtime {
namespace {

constexpr int64_t kRecentNs = int64_t{24} * 3600 * 1'000'000'000;

// Of other programs nobody knows what they do at a signal.
absl::Status CheckSaves(const engine::JobRun& job) {
  if (!job.plan || job.plan->argv().empty()) return absl::OkStatus();
  const auto& argv = job.plan->argv();
  const std::string& program = argv[0];
  const bool trainer = program.substr(program.rfind('/') + 1) == "muster-train";
  const bool saves = std::find(argv.begin(), argv.end(), "--exit-signal-handler") != argv.end();
  if (!trainer || saves) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id, " (", job.name,
                   ") does not save on a signal: muster-train runs without --exit-signal-handler "
                   "(exit-signal-handler = true in the recipe's [flags]); stop it without --save"));
}

absl::Status Ending() {
  return absl::UnavailableError("the controller is shutting down");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Controller>> Controller::Create(Options options) {
  MUSTER_ASSIGN_OR_RETURN(auto store, store::Store::Open(options.state_dir));
  MUSTER_ASSIGN_OR_RETURN(auto reader, store::Reader::Open(options.state_dir));
  std::unique_ptr<Controller> controller(
      new Controller(std::move(options), std::move(store), std::move(reader)));
  MUSTER_RETURN_IF_ERROR(controller->Recover());
  return controller;
}

Controller::Controller(Options options, std::unique_ptr<store::Store> store,
                       std::unique_ptr<store::Reader> reader)
    : options_(std::move(options)),
      store_(std::move(store)),
      reader_(std::move(reader)),
      secrets_(options_.state_dir),
      factory_(options_.make_links(store_->controller_id())),
      loop_(std::make_shared<Loop>(
          *options_.clock,
          [this](const engine::TimerKey& key) { host_->Handle(engine::TimerFired{key}); },
          [this] { host_->Flush(); })),
      links_(*factory_, *options_.logs,
             [this](const std::string& host, uint64_t number, decltype(engine::Event::what) what) {
               loop_->Post([this, host, number, what = std::move(what)] {
                 if (links_.IsCurrent(host, number)) host_->Handle(what);
               });
             }),
      stagings_({[this](std::function<void()> task) { return loop_->Post(std::move(task)); },
                 [this](decltype(engine::Event::what) what) { host_->Handle(std::move(what)); },
                 [this](const std::string& host, v1::AttachRequest message) {
                   links_.Send(host, std::move(message));
                 }}) {
  host_ = std::make_unique<EngineHost>(
      EngineHost::World{*options_.clock, *store_, secrets_, *options_.logs, output_, *loop_, links_,
                        watchers_, stagings_},
      options_.limits);
}

Controller::~Controller() {
  options_.logs->SetCompleteCallback([](const v1::AttemptId&) {});
  loop_->Stop();
  links_.Close();
}

absl::Status Controller::Recover() {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t last_job, reader_->LastJobId());
  last_job_ = last_job;
  MUSTER_ASSIGN_OR_RETURN(const auto records, reader_->OpenJobs());
  engine::Recovered recovered;
  std::vector<engine::InternalError> faults;
  for (const auto& record : records) {
    engine::JobRun job = FromRecord(record);
    const bool needs_secrets = job.state <= v1::JOB_STATE_PREPARING;
    if (const auto status = secrets_.Restore(job.id, job.spec); !status.ok() && needs_secrets) {
      faults.push_back({job.id, std::string(status.message())});
    }
    MUSTER_ASSIGN_OR_RETURN(auto story, reader_->EventsAfter(job.id, 0));
    host_->SetStory(job, std::move(story));
    recovered.jobs.push_back(std::move(job));
  }
  // The loop is shared with the log organ's threads, which may outlive us for a moment.
  options_.logs->SetCompleteCallback(
      [this, weak = std::weak_ptr<Loop>(loop_)](const v1::AttemptId& id) {
        if (const auto loop = weak.lock())
          loop->Post([this, id] { host_->Handle(engine::LogsComplete{id}); });
      });
  loop_->Post([this, recovered = std::move(recovered), faults = std::move(faults)] {
    // Faults first become known when the jobs are.
    host_->Handle(recovered);
    for (const auto& fault : faults) host_->Handle(fault);
  });
  loop_->Start();
  return absl::OkStatus();
}

absl::StatusOr<v1::SubmitResponse> Controller::Submit(const v1::JobSpec& spec) {
  MUSTER_ASSIGN_OR_RETURN(CheckedSpec checked, CheckSubmit(spec));
  const Owner owner = OwnerOf(spec);
  MUSTER_ASSIGN_OR_RETURN(
      const std::string folder,
      MakeOutputFolder(spec.output_root(), checked.name, options_.clock->RealtimeNs(), owner));
  absl::Status status = WriteOutput(folder + "/job.toml", JobToml(store::Mask(spec)), owner);
  if (status.ok() && checked.plan) {
    status = WriteOutput(folder + "/plan.txt", plan::RenderText(*checked.plan), owner);
  }
  v1::SubmitResponse response;
  const uint64_t id = ++last_job_;
  response.set_job_id(absl::StrCat(id));
  response.set_output_dir(folder);
  if (checked.plan) *response.mutable_plan() = *checked.plan;
  if (status.ok())
    status = StoreSubmitted({id, spec, std::move(checked.plan), checked.name, folder});
  if (status.ok()) return response;
  RemoveOutputFolder(folder, owner);
  return status;
}

absl::Status Controller::StoreSubmitted(engine::Submitted submitted) {
  absl::Status result = absl::OkStatus();
  const uint64_t id = submitted.job;
  const bool ran = loop_->RunAndWait([&] {
    result = secrets_.Put(id, submitted.spec);
    if (!result.ok()) return;
    host_->Handle(std::move(submitted));
    host_->AfterCommit([&, id](const absl::Status& committed) {
      result = committed;
      // The caller is told that there is no such job, so there must be none.
      if (!committed.ok())
        host_->Handle(engine::InternalError{id, std::string(committed.message())});
    });
  });
  return ran ? result : Ending();
}

absl::StatusOr<v1::ListJobsResponse> Controller::ListJobs(const v1::ListJobsRequest& request) {
  const int64_t since = request.all() ? 0 : options_.clock->RealtimeNs() - kRecentNs;
  MUSTER_ASSIGN_OR_RETURN(const auto records, reader_->ListJobs(since));
  v1::ListJobsResponse response;
  for (const auto& record : records) *response.add_jobs() = ToView(record);
  return response;
}

absl::StatusOr<v1::Job> Controller::GetJob(const std::string& job) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t id, reader_->FindJob(job));
  MUSTER_ASSIGN_OR_RETURN(const auto record, reader_->GetJob(id));
  return ToView(record);
}

absl::StatusOr<v1::StopResponse> Controller::Stop(const v1::StopRequest& request) {
  std::optional<engine::milliseconds> grace;
  if (request.has_grace()) {
    MUSTER_RETURN_IF_ERROR(CheckGrace(request.grace()));
    grace = engine::milliseconds(request.grace().seconds() * 1000 +
                                 request.grace().nanos() / 1'000'000);
  }
  std::optional<uint64_t> one;
  if (!request.all()) {
    if (request.job().empty()) return absl::InvalidArgumentError("stop what? Give a job, or --all");
    MUSTER_ASSIGN_OR_RETURN(one, reader_->FindJob(request.job()));
  }
  v1::StopResponse response;
  absl::Status refused = absl::OkStatus();
  const bool ran = loop_->RunAndWait([&] {
    std::vector<uint64_t> ids;
    if (one) ids.push_back(*one);
    for (const auto& [id, job] : host_->state().jobs) {
      if (!one && !engine::IsTerminal(job.state)) ids.push_back(id);
    }
    for (const uint64_t id : ids) {
      const auto job = host_->state().jobs.find(id);
      if (request.save() && refused.ok() && job != host_->state().jobs.end())
        refused = CheckSaves(job->second);
    }
    if (!refused.ok()) return;
    // Newest first, so that no queued job starts because an older one has just made room.
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      host_->Handle(engine::StopRequested{*it, grace, request.save()});
      response.add_job_ids(absl::StrCat(*it));
    }
  });
  if (!ran) return Ending();
  MUSTER_RETURN_IF_ERROR(refused);
  return response;
}

absl::Status Controller::Check(const v1::CheckRequest& asked, CheckCallback done) {
  const v1::JobSpec& spec = asked.spec();
  MUSTER_ASSIGN_OR_RETURN(CheckedSpec checked, CheckCheck(spec));
  const uint64_t id = engine::kFirstCheck + ++last_check_;
  engine::CheckRequested request{id, spec, std::move(checked.plan), std::nullopt};
  if (asked.has_leftovers()) request.sweep = asked.leftovers();
  const bool posted = loop_->Post([this, id, request = std::move(request), done = std::move(done)] {
    host_->ExpectCheck(id, done);
    host_->Handle(request);
  });
  return posted ? absl::OkStatus() : Ending();
}

absl::StatusOr<std::unique_ptr<api::Backend::Subscription>> Controller::Stage(
    const v1::StageRequest& request, StageCallback callback) {
  return stagings_.Begin(request, std::move(callback));
}

v1::ListNodesResponse Controller::ListNodes() {
  v1::ListNodesResponse response;
  std::map<std::string_view, v1::Node*> by_host;
  loop_->RunAndWait([&] {
    for (const auto& [host, link] : host_->state().links) {
      v1::Node& node = *response.add_nodes();
      node.set_host(host);
      node.set_state(link.state);
      node.set_transport(links_.Describe(host));
      *node.mutable_facts() = link.hello;
      node.set_error(link.error);
      by_host[node.host()] = &node;
    }
    for (const auto& [id, job] : host_->state().jobs) {
      if (engine::IsTerminal(job.state)) continue;
      for (const auto& node : job.nodes) {
        const auto found = by_host.find(node.host.host());
        if (found != by_host.end()) found->second->add_job_ids(absl::StrCat(id));
      }
    }
  });
  auto checks = reader_->NodeChecks();
  if (!checks.ok()) return response;
  for (v1::NodeCheck& check : *checks) {
    const auto found = by_host.find(check.host());
    if (found != by_host.end()) *found->second->mutable_last_check() = std::move(check);
  }
  return response;
}

v1::InfoResponse Controller::Info() {
  v1::InfoResponse response;
  response.set_version(kVersion);
  response.set_pid(static_cast<uint32_t>(::getpid()));
  response.set_controller_id(store_->controller_id());
  response.set_state_dir(options_.state_dir);
  loop_->RunAndWait([&] {
    uint32_t active = 0;
    for (const auto& [id, job] : host_->state().jobs)
      active += engine::IsTerminal(job.state) ? 0 : 1;
    response.set_active_jobs(active);
  });
  return response;
}

absl::Status Controller::Shutdown(bool force) {
  absl::Status result = absl::OkStatus();
  const bool ran = loop_->RunAndWait([&] {
    std::string active;
    for (const auto& [id, job] : host_->state().jobs) {
      if (!engine::IsTerminal(job.state))
        absl::StrAppend(&active, active.empty() ? "" : ", ", id, " (", job.name, ")");
    }
    if (!active.empty() && !force) {
      result = absl::FailedPreconditionError(
          absl::StrCat("jobs are active: ", active,
                       "; stop them first, or force it: they run on without a controller"));
    } else if (options_.on_shutdown) {
      options_.on_shutdown();
    }
  });
  return ran ? result : Ending();
}

absl::StatusOr<std::unique_ptr<api::Backend::Subscription>> Controller::Watch(
    const std::string& job, uint64_t after, EventCallback callback) {
  MUSTER_ASSIGN_OR_RETURN(const uint64_t id, reader_->FindJob(job));
  auto watcher = std::make_shared<Watchers::Watcher>(loop_, after, std::move(callback));
  absl::Status status = absl::OkStatus();
  if (!loop_->RunAndWait([&] { status = AddWatcher(id, after, watcher); })) return Ending();
  MUSTER_RETURN_IF_ERROR(status);
  return MakeSubscription(std::move(watcher));
}

absl::Status Controller::AddWatcher(uint64_t job, uint64_t after,
                                    const std::shared_ptr<Watchers::Watcher>& watcher) {
  const std::optional<v1::Job> view = host_->View(job);
  const std::vector<v1::JobEvent>* const story = host_->Story(job);
  if (view && story != nullptr) {
    const bool ended = engine::IsTerminal(view->state());
    watcher->Call(*story, ended ? view : std::nullopt);
    if (!ended) watchers_.Add(job, watcher);
    return absl::OkStatus();
  }
  // An old job: all of it is in the store, once what this turn has changed is there too (the job
  // may have ended a moment ago).
  host_->Flush();
  MUSTER_ASSIGN_OR_RETURN(const auto events, reader_->EventsAfter(job, after));
  MUSTER_ASSIGN_OR_RETURN(const auto record, reader_->GetJob(job));
  watcher->Call(events, ToView(record));
  return absl::OkStatus();
}

void Controller::ReportLogFault(const v1::AttemptId& id, const absl::Status& fault) {
  loop_->Post([this, id, fault] {
    for (const auto& [number, job] : host_->state().jobs) {
      if (absl::StrCat(number) != id.job_id()) continue;
      host_->Handle(engine::Remark{
          number, fault.ok() ? "logs are written again"
                             : "logs can't be written: " + std::string(fault.message())});
      return;
    }
  });
}

}  // namespace muster::runtime
