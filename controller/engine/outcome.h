#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/engine/state.h"

// How an end is told: one place for exit codes and for the words about ranks. docs/exit-codes.md is
// its page.

namespace muster::engine {

// The exit code of Muster's own causes; for RANK_FAILED the rank's own code counts.
int32_t CodeOf(v1::Cause cause);

v1::Outcome MakeOutcome(v1::Cause cause, const std::string& message, const std::string& host = "");

// "SIGKILL" for 9; "signal 77" for one without a name.
std::string SignalName(int32_t signal);

// "exited with code 3", "was killed by SIGKILL (9); Muster did not send it".
std::string DescribeExit(const v1::RankStatus& status);

// Ended by itself, and not well: what makes a job fail.
bool IsFailure(const v1::RankStatus& status);

// The node has looked, and nothing of the attempt is left there.
bool IsClean(const v1::EndReport& end);

// The text of an error record: torchrun's error file ({"message": text} or {"message": {"message":
// text}}), without its call stack. At most 500 bytes, without control characters; "" if there is
// none.
std::string ErrorText(const std::string& record);

// Which rank failed first?
struct Culprit {
  uint32_t rank = 0;
  // Ranks that may as well have been first, within the uncertainty of the nodes' clocks; without
  // `rank` itself.
  std::vector<uint32_t> undecided;
};

// By the order of the waits on each node, and between nodes by their clocks, put right by the
// offsets that preflight measured. Nodes of one machine (same boot id) have one clock. Only
// failures count that we did not cause by a stop. Nothing: no rank has failed.
std::optional<Culprit> FindCulprit(const JobRun& job);

// The outcome of a job whose rank failed, from FindCulprit.
v1::Outcome RankFailedOutcome(const JobRun& job, const Culprit& culprit);

}  // namespace muster::engine
