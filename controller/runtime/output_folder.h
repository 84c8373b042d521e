#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::runtime {

// The submitter, who owns everything in the output folder.
struct Owner {
  uint32_t uid = 0;
  uint32_t gid = 0;
};

// Makes `root` (with its parents) and in it `<YYYY-MM-DD_HH-MM-SS>_<name>`, local time; `_2`, `_3`
// ... follow if that exists. Characters of the name that do not belong in a file name become '_'.
// Returns the path.
absl::StatusOr<std::string> MakeOutputFolder(const std::string& root, std::string_view name,
                                             int64_t realtime_ns, const Owner& owner);

// Writes a file anew (never half: a temporary file is renamed), or adds to its end (all of
// `text` or nothing).
absl::Status WriteOutput(const std::string& path, std::string_view text, const Owner& owner);
absl::Status AppendOutput(const std::string& path, std::string_view text, const Owner& owner);

// Takes a new folder back that holds nothing but job.toml and plan.txt. Best effort.
void RemoveOutputFolder(const std::string& path, const Owner& owner);

}  // namespace muster::runtime
