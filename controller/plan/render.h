#pragma once

#include <string>

#include "muster/v1/job.pb.h"

// A plan for people and for programs. Pure. Secrets are not in a plan, so they can't appear here.

namespace muster::plan {

// Plain text: sizes with their arithmetic, hosts, rank table, warnings. For plan.txt and `muster
// plan`.
std::string RenderText(const v1::Plan& plan);

// One readable JSON object, ending in a newline.
std::string ToJson(const v1::Plan& plan);

// `word` as a POSIX shell would need it typed; other bytes are kept.
std::string ShellQuoted(const std::string& word);

}  // namespace muster::plan
