#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "controller/nodes/ssh/config.h"
#include "controller/nodes/ssh/keywords.h"

namespace muster::nodes::ssh {

struct Setting {
  Keyword keyword = Keyword::kIgnored;
  std::string_view name;                  // as written
  std::string_view text;                  // all after the keyword
  const std::vector<std::string>& words;  // the same in words
  std::string place;                      // FILE:LINE
  bool active = true;                     // false: in a part for other hosts, only checked
};

// Checks a keyword's value and keeps it in `config` unless it has one already.
absl::Status ApplySetting(const Setting& setting, const ConfigSource& source, Config& config);

}  // namespace muster::nodes::ssh
