#pragma once

#include <string>

#include "trainer/config/parse.h"

// What muster-train says about its flags. Pure.

namespace muster::config {

// `--help`: every flag by group, with default and choices.
std::string HelpText();
// `--print-config`: every flag, its value and where it came from; then the flags without effect and
// why.
std::string ConfigText(const CommandLine& line);
// What a run prints at its start: the values that are not the defaults, and the flags without
// effect.
std::string ChangedText(const CommandLine& line);

}  // namespace muster::config
