#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/engine/action.h"
#include "controller/engine/state.h"
#include "controller/engine/transitions.h"

namespace muster::engine {

// What the flows of one Reduce() share: the state to change, the actions to add to, and the time of
// the event. Lives as long as the call. Its methods are the engine's whole vocabulary of effects.
class Context {
 public:
  Context(State& state, Actions& actions, int64_t now_ns)
      : state_(state), actions_(actions), now_ns_(now_ns) {}

  State& state() { return state_; }
  const State& state() const { return state_; }
  int64_t now_ns() const { return now_ns_; }
  void Do(Action action) { actions_.push_back(std::move(action)); }

  // --- jobs
  // Moves the job along its table, emits the "state" event and persists. False, with a
  // ReportIllegal, for an illegal input: then nothing has changed.
  bool Advance(JobRun& job, JobInput input, std::string_view text);
  // Adds an event to the job's story.
  void Emit(JobRun& job, std::string_view kind, std::string_view text,
            std::string_view severity = "note", std::string_view host = "",
            std::optional<uint32_t> rank = std::nullopt);
  void Persist(const JobRun& job) {
    if (!job.check_only) Do(PersistJob{job.id});
  }
  void ReportIllegal(const JobRun* job, std::string_view message);

  // --- timers
  void StartTimer(const JobRun& job, TimerKind kind, milliseconds after, std::string host = "");
  void CancelTimer(const JobRun& job, TimerKind kind, std::string host = "");

  // --- nodes
  bool IsUp(const std::string& host) const;
  // Makes sure that a link to the host exists and is dialling: a link that is down, or that leads
  // elsewhere, is made anew, so that no back-off is waited out.
  void Dial(const v1::Host& host, const std::string& default_transport);
  // Moves the link along its table and notes it in the node's history.
  bool MoveLink(Link& link, LinkInput input, std::string_view text);
  // Ends the links that are down and that no job needs.
  void ReleaseIdleLinks();
  // Changes the wish for a node (a new generation) and sends it if the link is up; else it goes out
  // on the next hello.
  void Wish(JobRun& job, NodeRun& node, v1::Goal goal);
  // Sends the wish as it stands.
  void SendWish(const JobRun& job, const NodeRun& node);

 private:
  State& state_;
  Actions& actions_;
  const int64_t now_ns_;
};

}  // namespace muster::engine
