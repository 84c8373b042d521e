#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "controller/plan/recipe_reader.h"
#include "muster/v1/job.pb.h"

// What may be kept of the ranks' output: `[logs]` of a recipe and the flags of the same names.
// Pure.

namespace muster::plan {

// As written; what is absent keeps its default.
struct LogWords {
  std::optional<std::string> quota;      // "256MiB", "none"
  std::optional<std::string> policy;     // "block", "drop-oldest-with-marker"
  std::optional<std::string> rotate;     // "1GiB", "never"
  std::optional<std::string> keep;       // "30d", "forever"
  std::optional<std::string> keep_size;  // "10GiB", "all"
};

// "4096", "64KiB", "1.5GiB", "10MB"; at least 1.
absl::StatusOr<uint64_t> ParseByteSize(std::string_view text);

// The table `[logs]`. Words that mean nothing are complaints.
LogWords ReadLogs(const TomlEntry& table, Complaints& complaints);

// `flags` over `recipe` over the defaults: 1 GiB a stream, block, rotation at 1 GiB, nothing
// removed. InvalidArgument names the flag.
absl::StatusOr<v1::LogRules> MakeLogRules(const LogWords& recipe, const LogWords& flags);

}  // namespace muster::plan
