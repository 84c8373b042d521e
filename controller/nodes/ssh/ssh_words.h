#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "controller/nodes/ssh/config.h"

namespace muster::nodes::ssh {

// The words after `--transport ssh:`, which are some of ssh's own options: -F FILE, -o KEY=VALUE,
// -i FILE, -J HOPS, -l USER, -p PORT. The host is left empty. Paths must not depend on a working
// folder: the controller has another than its user. InvalidArgument names the word and the fix.
absl::StatusOr<ConfigRequest> ParseSshWords(const std::vector<std::string>& words);

}  // namespace muster::nodes::ssh
