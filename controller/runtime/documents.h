#pragma once

#include <string>

#include "muster/v1/control.pb.h"

// The text files of an output folder. Pure; no secret is ever in them.

namespace muster::runtime {

// One line of events.jsonl, with its newline.
std::string EventLine(const v1::JobEvent& event);

// job.toml: the recipe if there is one (its secrets are masked already), else the command as a
// recipe. `spec` is masked.
std::string JobToml(const v1::JobSpec& spec);

}  // namespace muster::runtime
