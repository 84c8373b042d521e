#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "muster/v1/worker.pb.h"
#include "worker/daemon/attempt_runner.h"
#include "worker/daemon/cleaner.h"
#include "worker/daemon/prober.h"
#include "worker/daemon/session.h"
#include "worker/daemon/stager.h"

namespace muster::worker {

// The daemon's state: attempts and the controllers' streams, and how messages move between them.
// Reactor thread only.
class Worker {
 public:
  // Gathers the facts of a hello and hands them over, at once or later (slow device tools), on the
  // reactor thread.
  using HelloMaker = std::function<void(std::function<void(v1::WorkerHello)>)>;

  // The helper outlives the worker.
  Worker(const NodeContext& node, HelloMaker hello, ProbeHelper& helper);

  // Takes up what an earlier daemon left in the state folder.
  void LoadAttempts();

  // From the transport. A session is known from its first message on, and forgotten by OnClosed.
  void OnMessage(const std::shared_ptr<Session>& session, const v1::AttachRequest& message);
  void OnWritable(const std::shared_ptr<Session>& session);
  void OnClosed(const std::shared_ptr<Session>& session);

  // No controller is connected and nothing of any attempt lives.
  bool Idle() const;

 private:
  void TakeHello(const std::shared_ptr<Session>& session, const v1::ControllerHello& hello);
  void Welcome(const std::shared_ptr<Session>& session, v1::WorkerHello hello);
  void TakeDesired(Session& session, const v1::Desired& wish);
  void TakeProbe(const std::string& controller_id, const v1::Probe& probe);
  void TakeSweep(const std::string& controller_id, const v1::Probe& probe);
  void Answer(const std::string& controller_id, v1::ProbeResult result);
  void SendObserved(const AttemptRunner& runner);
  void SendStageReport(const std::string& controller_id, v1::StageReport report);
  void PumpLogs(const std::string& controller_id);
  Session* SessionOf(const std::string& controller_id) const;
  // The same, once our hello is out: nothing may come before it.
  Session* WelcomedSessionOf(const std::string& controller_id) const;
  AttemptRunner::Callbacks RunnerCallbacks(const v1::AttemptId& id);

  const NodeContext& node_;
  const HelloMaker hello_;
  ProbeHelper& helper_;
  Prober prober_;
  Stager stager_;
  Cleaner cleaner_;
  std::map<std::string, std::unique_ptr<AttemptRunner>> attempts_;  // by AttemptName
  std::map<std::string, std::shared_ptr<Session>> sessions_;        // by controller id
};

}  // namespace muster::worker
