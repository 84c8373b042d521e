#pragma once

#include <chrono>
#include <string>

namespace muster::worker {

// For a worker that was pushed: its program is <folder>/bin/<checksum>/musterd. Of others, nothing
// happens.

// Notes that this build is in use. Cheap.
void NoteBuildUse(const std::string& program);

// Also removes what earlier pushes left in bin: builds that no process runs and that were last used
// longer than `unused` ago, and as old files of pushes that were cut off. Never the own build.
void TidyBuilds(const std::string& program, std::chrono::seconds unused);

inline constexpr std::chrono::seconds kKeepUnusedBuild = std::chrono::hours(1);

}  // namespace muster::worker
