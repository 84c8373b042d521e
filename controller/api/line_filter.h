#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "controller/why/pattern.h"
#include "muster/v1/control.pb.h"

namespace muster::api {

// Those lines of a run that a pattern finds. A line that comes in several runs, because it is
// longer than the reading buffer, is looked at in pieces. Immutable; any thread.
class LineFilter {
 public:
  // InvalidArgument: what is wrong with the pattern, and where.
  static absl::StatusOr<LineFilter> Make(const std::string& pattern);

  // Runs of neighbouring lines, each with the time of its first line. InvalidArgument: a search
  // took too long (why::Pattern), and on which rank's line.
  absl::StatusOr<std::vector<v1::LogsResponse>> Matches(const v1::LogsResponse& run) const;

 private:
  explicit LineFilter(why::Pattern pattern) : pattern_(std::move(pattern)) {}

  why::Pattern pattern_;
};

}  // namespace muster::api
