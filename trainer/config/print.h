#pragma once

#include <string>

#include "trainer/config/parse.h"

// What muster-train says about its flags. Pure.

namespace muster::config {

// `--help`: every flag by group, with default and choices.
std::string HelpText();
// `--print-config`: every flag, its value and where it came from; then the flags without effect and
// why; then a note about flags whose absence would give another model in Megatron.
std::string ConfigText(const CommandLine& line);
// What a run prints at its start: the values that are not the defaults, the flags without effect,
// the note.
std::string ChangedText(const CommandLine& line);

}  // namespace muster::config
