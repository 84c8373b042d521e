#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "controller/why/rules.h"
#include "muster/v1/job.pb.h"

namespace muster::why {

// A file of rules that is built in: those of deploy/rules.
struct ShippedRules {
  const char* path;
  const char* text;
};
extern const ShippedRules kShippedRules[];
extern const size_t kNumShippedRules;

// The folders of a user's and a site's own rules: $XDG_CONFIG_HOME/muster/rules (else
// ~/.config/muster/rules) and /etc/muster/rules.
std::vector<std::string> RuleFolders();

// All rules for a job, in the order in which they are tried: the job's own, those of `folders`
// (*.toml by name), the shipped ones. A file that is wrong or can't be read is an error in the set,
// and the others count. Reads files; any thread.
RuleSet LoadRules(const v1::JobSpec& spec, const std::vector<std::string>& folders);

}  // namespace muster::why
