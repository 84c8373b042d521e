#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "controller/engine/reduce.h"
#include "controller/logs/log_registry.h"
#include "controller/runtime/link_pool.h"
#include "controller/runtime/loop.h"
#include "controller/runtime/output_writer.h"
#include "controller/runtime/stagings.h"
#include "controller/runtime/watchers.h"
#include "controller/store/secrets.h"
#include "controller/store/store.h"

namespace muster::runtime {

// The engine in the real world: feeds events to Reduce() and turns its actions into rows, messages,
// timers, files and calls. Events of one bunch share one commit, and nothing leaves the process
// before it. Engine thread only.
class EngineHost {
 public:
  // What the host works with; all of it outlives the host.
  struct World {
    const Clock& clock;
    store::Store& store;
    store::Secrets& secrets;
    logs::LogRegistry& logs;
    OutputWriter& output;
    Loop& loop;
    LinkPool& links;
    Watchers& watchers;
    Stagings& stagings;
  };
  EngineHost(const World& world, const engine::Limits& limits);
  // Checks that have not ended are told so.
  ~EngineHost();

  // Tells the engine. What follows from it happens in Flush().
  void Handle(decltype(engine::Event::what) what);
  // Commits, then carries out. The loop calls it after each bunch.
  void Flush();
  // Called once, in the next Flush, with the result of its commit.
  void AfterCommit(std::function<void(const absl::Status&)> callback) {
    committed_.push_back(std::move(callback));
  }

  // Told the end of the check that is about to be handed to Handle(), or that it will not come.
  using CheckCallback = std::function<void(absl::StatusOr<v1::CheckResponse>)>;
  void ExpectCheck(uint64_t id, CheckCallback callback) { checks_[id] = std::move(callback); }

  const engine::State& state() const { return state_; }
  // Events of a job that the engine still has; null for another one, whose events are in the store.
  const std::vector<v1::JobEvent>* Story(uint64_t job) const;
  // Before Recovered: the events so far. events.jsonl is written anew, since its end may have been
  // lost.
  void SetStory(const engine::JobRun& job, std::vector<v1::JobEvent> story);
  // The job as it is now, with its ranks; nothing for one that the engine no longer has.
  std::optional<v1::Job> View(uint64_t job) const;

 private:
  struct Recorder;
  // Rows that wait for the next commit; a job or rank that changed twice is written once.
  struct Unsaved {
    std::map<uint64_t, store::JobRecord> jobs;
    std::map<std::pair<uint64_t, uint32_t>, store::RankRecord> ranks;
    std::vector<store::EventRecord> events;
    std::vector<store::NodeHistoryRecord> node_history;
    std::map<std::string, v1::NodeCheck> node_checks;
    std::vector<uint64_t> closed;

    store::Batch ToBatch() &&;
    // After a commit that failed; nothing has been added since.
    void TakeBack(store::Batch batch);
  };
  absl::Status Commit();
  void TellWatchers();
  void OpenLogs(uint64_t job, const logs::AttemptFiles& files);

  const World world_;
  engine::State state_;
  std::set<uint64_t> touched_;  // jobs to persist, once, as they are at the next commit
  Unsaved unsaved_;
  std::vector<std::function<void()>> effects_;  // of the actions, in order
  std::vector<std::function<void(const absl::Status&)>> committed_;
  std::map<uint64_t, std::vector<v1::JobEvent>> stories_;
  std::map<uint64_t, std::vector<v1::JobEvent>> news_;  // for the watchers
  std::map<uint64_t, v1::Job> finals_;
  std::vector<uint64_t> forgotten_;
  std::map<uint64_t, CheckCallback> checks_;
  bool commit_failed_ = false;
};

// The submitter of a job, who owns its output.
Owner OwnerOf(const v1::JobSpec& spec);

}  // namespace muster::runtime
