#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <string_view>

#include "controller/nodes/ssh/config.h"

namespace muster::nodes::ssh {

// What a Match line is compared with.
struct MatchSubject {
  const Config& so_far;
  const ConfigRequest& request;
  bool final_pass = false;  // the second reading, which `Match final` asks for
};

struct MatchOutcome {
  bool matched = false;
  bool wants_final_pass = false;
};

// The words after `Match`. `may_run`: false in a part of the configuration that does not apply
// anyway, whose `exec` is not run.
absl::StatusOr<MatchOutcome> EvaluateMatch(std::string_view words, const MatchSubject& subject,
                                           bool may_run, ConfigSource& source);

}  // namespace muster::nodes::ssh
