#pragma once

#include <absl/status/status.h>

#include <string>

#include "muster/v1/control.pb.h"

// The exit codes of `muster` (docs/exit-codes.md) and the words for causes and states.

namespace muster::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 2;        // wrong command line, or input that cannot work
inline constexpr int kExitPreflight = 120;  // a machine is not fit or does not answer
inline constexpr int kExitLaunch = 121;     // a rank could not be started
inline constexpr int kExitNodeLost = 122;   // a node vanished while the job ran
inline constexpr int kExitHang = 123;       // no progress
inline constexpr int kExitLeftovers = 124;  // processes are left after a stop, or nobody could look
inline constexpr int kExitInternal = 125;   // Muster itself
inline constexpr int kExitStopped = 130;    // stopped by the user

// For an error of a call to the controller, or of work done here.
int ExitCodeFor(const absl::Status& status);

// For a job that has ended.
int ExitCodeFor(const v1::Job& job);

// Lower-case words as in --json: "running", "rank_failed", "up", "exited", "stdout".
std::string StateName(v1::JobState state);
std::string CauseName(v1::Cause cause);
std::string LinkStateName(v1::LinkState state);
std::string RankStateName(v1::RankState state);
std::string StreamName(v1::Stream stream);

// The code of a status in the words of its users: "not found", without gRPC's numbers.
std::string ErrorText(const absl::Status& status);

}  // namespace muster::cli
