#pragma once

#include <string>

#include "controller/engine/context.h"
#include "controller/engine/event.h"

// The parts of Reduce(), in the order in which a job meets them. Each takes the context of the call
// and handles one event, or one step that several events lead to ("Continue..." looks at what is
// there and goes on if that is enough).

namespace muster::engine {

// --- queue_flow.cc: submit, wait for hosts, recover
void OnSubmitted(Context& c, const Submitted& event);
void OnRecovered(Context& c, const Recovered& event);
// Starts every queued job whose hosts are free. FIFO for each host.
void Schedule(Context& c);

// --- preflight_flow.cc, asking.cc: dial, plan, probe, compare
// A check goes through the same as a job, beside the queue: it takes no host from anybody.
void OnCheckRequested(Context& c, const CheckRequested& event);
// Makes the job's nodes and dials them; goes on with planning.
void BeginPlanning(Context& c, JobRun& job);
// In planning and preflight: whatever can be done now.
void ContinueChecks(Context& c, JobRun& job);
// Ends a job of which nothing was started.
void Reject(Context& c, JobRun& job, v1::Cause cause, const std::string& message,
            const std::string& host = "");
void OnProbeAnswered(Context& c, const ProbeAnswered& event);
// Goes on without the hosts that did not say hello, or not answer, in time: the others are asked
// and compared all the same, so that one run names everything that is to be mended.
void OnChecksTimeout(Context& c, JobRun& job, TimerKind kind);
// The worker is being pushed to a host: it has come forward.
void OnPushBegan(Context& c, const PushBegan& event);
// The link to a host of a job in planning or preflight came up, or broke.
void OnLinkUpInChecks(Context& c, JobRun& job, NodeRun& node);
void OnLinkLostInChecks(Context& c, JobRun& job, NodeRun& node, const absl::Status& why,
                        bool was_up);

// --- launch_flow.cc: prepare everywhere, then start everywhere
void BeginPreparing(Context& c, JobRun& job);
void OnNodeObserved(Context& c, const NodeObserved& event);
// From preparing on: compares what the nodes say with what is wished, and goes on, stops or ends.
void ContinueRun(Context& c, JobRun& job);
void OnLaunchTimeout(Context& c, JobRun& job, TimerKind kind);

// --- stop_flow.cc: stop everywhere, the proof, the end
void OnStopRequested(Context& c, const StopRequested& event);
// Stops every node because of `reason`, from preparing on.
void Break(Context& c, JobRun& job, StopReason reason);
// Declares the nodes that have not proved their end unverified.
void OnStopTimeout(Context& c, JobRun& job);
// In running and stopping: ends the job once every node is settled.
void EndIfSettled(Context& c, JobRun& job);
// What every end has in common. `job.outcome` is set.
void EndJob(Context& c, JobRun& job);
// After the end: lets the nodes forget the attempt, then forgets the job.
void ContinueRelease(Context& c, JobRun& job);
void OnLogsComplete(Context& c, const LogsComplete& event);
void OnInternalError(Context& c, const InternalError& event);
void OnRemark(Context& c, const Remark& event);

// --- link_flow.cc
void OnLinkUp(Context& c, const LinkUp& event);
void OnLinkLost(Context& c, const LinkLost& event);
// The link to `host` stayed broken for too long.
void OnLostTimeout(Context& c, JobRun& job, const std::string& host);

}  // namespace muster::engine
