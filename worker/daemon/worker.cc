#include "worker/daemon/worker.h"

#include <algorithm>

#include "common/log.h"
#include "common/status.h"
#include "common/version.h"
#include "worker/ranks/reconcile.h"

namespace muster::worker {
namespace {

// A tombstone keeps old wishes away; no message is a week late.
constexpr std::chrono::hours kTombstoneLife(24 * 7);

}  // namespace

Worker::Worker(const NodeContext& node, HelloMaker hello, ProbeHelper& helper)
    : node_(node),
      hello_(std::move(hello)),
      helper_(helper),
      prober_(node.reactor, node.proc, helper),
      stager_(node.reactor, {.state_dir = node.state_dir},
              [this](const std::string& controller, v1::StageReport report) {
                SendStageReport(controller, std::move(report));
              }),
      cleaner_(node.reactor, node.proc) {}

void Worker::LoadAttempts() {
  for (const std::string& folder : ranks::FindAttempts(node_.state_dir)) {
    auto record = ranks::LoadRecord(folder);
    if (absl::IsNotFound(record.status())) {
      // The daemon died while it wrote the folders: nothing was accepted, nothing runs.
      ranks::DropAttempt(folder);
      continue;
    }
    if (!record.ok()) {
      log::Error("left alone: " + std::string(record.status().message()));
      continue;
    }
    const std::chrono::nanoseconds age(node_.reactor.clock().RealtimeNs() - record->forgotten_ns());
    if (record->forgotten_ns() != 0 && age > kTombstoneLife) {
      ranks::DropAttempt(folder);
      continue;
    }
    auto runner = AttemptRunner::Load(node_, folder, RunnerCallbacks(record->id()));
    if (!runner.ok()) {
      log::Error("left alone: " + std::string(runner.status().message()));
      continue;
    }
    attempts_[ranks::AttemptName(record->id())] = *std::move(runner);
  }
}

AttemptRunner::Callbacks Worker::RunnerCallbacks(const v1::AttemptId& id) {
  return {[this, name = ranks::AttemptName(id)] {
            const auto it = attempts_.find(name);
            if (it != attempts_.end()) SendObserved(*it->second);
          },
          [this, controller = id.controller_id()] { PumpLogs(controller); },
          [this](const v1::Probe& probe, ProbeHelper::Done done) {
            helper_.Ask(probe, std::move(done));
          }};
}

Session* Worker::SessionOf(const std::string& controller_id) const {
  const auto it = sessions_.find(controller_id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

Session* Worker::WelcomedSessionOf(const std::string& controller_id) const {
  Session* session = SessionOf(controller_id);
  return session != nullptr && session->welcomed ? session : nullptr;
}

void Worker::OnMessage(const std::shared_ptr<Session>& session, const v1::AttachRequest& message) {
  if (message.has_hello()) {
    TakeHello(session, message.hello());
  } else if (session->controller_id.empty()) {
    session->Close(absl::FailedPreconditionError("the first message must be a hello"));
  } else if (SessionOf(session->controller_id) != session.get()) {
    // Replaced by a newer stream; what it still says is old.
  } else if (message.has_desired()) {
    TakeDesired(*session, message.desired());
  } else if (message.has_probe()) {
    TakeProbe(session->controller_id, message.probe());
  } else if (message.has_stage()) {
    stager_.Take(session->controller_id, message.stage());
  } else if (message.has_log_ack()) {
    v1::AttemptId id = message.log_ack().id();
    const auto it = attempts_.find(ranks::AttemptName(id));
    if (it != attempts_.end() && id.controller_id() == session->controller_id) {
      it->second->Ack(message.log_ack());
      PumpLogs(session->controller_id);
    }
  }
  session->ReadNext();
}

void Worker::TakeHello(const std::shared_ptr<Session>& session, const v1::ControllerHello& hello) {
  if (hello.protocol() != kProtocol) {
    session->Close(absl::FailedPreconditionError(
        "controller speaks protocol " + std::to_string(hello.protocol()) + ", this musterd (" +
        kVersion + ") speaks " + std::to_string(kProtocol) + ": install the same version on both"));
    return;
  }
  if (!ranks::IsSafeName(hello.controller_id())) {
    session->Close(absl::InvalidArgumentError("controller id '" + hello.controller_id() +
                                              "': 1 to 64 of A-Z a-z 0-9 . _ -"));
    return;
  }
  if (!session->controller_id.empty()) {
    session->Close(absl::FailedPreconditionError("a second hello"));
    return;
  }
  session->controller_id = hello.controller_id();
  std::shared_ptr<Session>& current = sessions_[hello.controller_id()];
  if (current != nullptr) {
    current->Close(absl::AbortedError("replaced by a newer stream of the same controller"));
  }
  current = session;
  log::Info("controller " + hello.controller_id() + " (" + hello.version() + ") connected");
  hello_([this, session](v1::WorkerHello answer) { Welcome(session, std::move(answer)); });
}

void Worker::Welcome(const std::shared_ptr<Session>& session, v1::WorkerHello hello) {
  const std::string controller = session->controller_id;
  v1::AttachResponse answer;
  *answer.mutable_hello() = std::move(hello);
  session->Send(std::move(answer));
  if (std::exchange(session->welcomed, true)) return;  // only news of devices
  if (SessionOf(controller) != session.get()) return;
  for (const auto& [name, runner] : attempts_) {
    if (runner->record().id().controller_id() != controller) continue;
    runner->spool().Rewind();
    if (!runner->Forgotten()) SendObserved(*runner);
  }
  PumpLogs(controller);
}

void Worker::TakeDesired(Session& session, const v1::Desired& wish) {
  const std::string name = ranks::AttemptName(wish.id());
  const auto it = attempts_.find(name);
  AttemptRunner* runner = it == attempts_.end() ? nullptr : it->second.get();
  std::string refusal =
      ranks::Refusal(wish, runner == nullptr ? nullptr : &runner->record(), session.controller_id);
  if (refusal.empty() && runner == nullptr) {
    auto created =
        AttemptRunner::Create(node_, wish, prober_.Devices(name), RunnerCallbacks(wish.id()));
    if (created.ok()) {
      runner = created->get();
      attempts_[name] = *std::move(created);
    } else {
      refusal = std::string(created.status().message());
    }
  }
  if (!refusal.empty()) {
    log::Warning("refused: " + refusal);
    v1::AttachResponse answer;
    if (runner != nullptr) {
      runner->set_refused(refusal);
      *answer.mutable_observed() = runner->Observe();
    } else {
      *answer.mutable_observed()->mutable_id() = wish.id();
      answer.mutable_observed()->set_refused(refusal);
    }
    session.Send(std::move(answer));
    return;
  }
  log::Info("attempt " + name + ": " + v1::Goal_Name(wish.goal()) +
            (wish.stop_reason().empty() ? "" : " (" + wish.stop_reason() + ")"));
  if (wish.goal() != v1::GOAL_PREPARED) prober_.ReleasePort(name);
  runner->Apply(wish);
}

void Worker::TakeProbe(const std::string& controller_id, const v1::Probe& probe) {
  if (probe.has_leftovers()) {
    TakeSweep(controller_id, probe);
    return;
  }
  prober_.Probe(
      probe, ranks::AttemptName(probe.id()),
      [this, controller_id](v1::ProbeResult result) { Answer(controller_id, std::move(result)); });
}

void Worker::TakeSweep(const std::string& controller_id, const v1::Probe& probe) {
  const auto know = [this, controller_id, sweep = probe.leftovers()] {
    ranks::AttemptKnowledge known;
    known.tag = node_.tag;
    known.controller = controller_id;
    known.live_jobs.assign(sweep.live_jobs().begin(), sweep.live_jobs().end());
    known.any_controller = sweep.any_controller();
    for (const auto& [name, runner] : attempts_) {
      if (!runner->Idle()) known.running.push_back(name);
    }
    return known;
  };
  const int64_t received_ns = node_.reactor.clock().RealtimeNs();
  cleaner_.Sweep(probe.leftovers().end(), know,
                 [this, controller_id, received_ns,
                  id = probe.probe_id()](const v1::LeftoverResult& leftovers) {
                   v1::ProbeResult result;
                   result.set_probe_id(id);
                   result.set_received_ns(received_ns);
                   result.set_realtime_ns(node_.reactor.clock().RealtimeNs());
                   *result.mutable_leftovers() = leftovers;
                   Answer(controller_id, std::move(result));
                 });
}

void Worker::Answer(const std::string& controller_id, v1::ProbeResult result) {
  Session* const session = WelcomedSessionOf(controller_id);
  if (session == nullptr) return;  // it will ask again
  v1::AttachResponse answer;
  *answer.mutable_probe_result() = std::move(result);
  session->Send(std::move(answer));
}

void Worker::SendObserved(const AttemptRunner& runner) {
  Session* session = WelcomedSessionOf(runner.record().id().controller_id());
  if (session == nullptr) return;
  v1::AttachResponse message;
  *message.mutable_observed() = runner.Observe();
  session->Send(std::move(message));
}

void Worker::SendStageReport(const std::string& controller_id, v1::StageReport report) {
  Session* session = WelcomedSessionOf(controller_id);
  if (session == nullptr) return;  // it will begin again
  v1::AttachResponse message;
  *message.mutable_stage() = std::move(report);
  session->Send(std::move(message));
}

void Worker::PumpLogs(const std::string& controller_id) {
  Session* session = WelcomedSessionOf(controller_id);
  if (session == nullptr) return;
  for (const auto& [name, runner] : attempts_) {
    if (runner->record().id().controller_id() == controller_id && !runner->Forgotten()) {
      runner->spool().Pump(*session);
    }
  }
}

void Worker::OnWritable(const std::shared_ptr<Session>& session) {
  PumpLogs(session->controller_id);
}

void Worker::OnClosed(const std::shared_ptr<Session>& session) {
  const auto it = sessions_.find(session->controller_id);
  if (it == sessions_.end() || it->second != session) return;
  log::Info("controller " + session->controller_id + " disconnected");
  stager_.OnDisconnected(session->controller_id);
  sessions_.erase(it);
}

bool Worker::Idle() const {
  return sessions_.empty() && stager_.Idle() &&
         std::all_of(attempts_.begin(), attempts_.end(),
                     [](const auto& a) { return a.second->Idle(); });
}

}  // namespace muster::worker
