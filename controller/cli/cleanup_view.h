#pragma once

#include <string>
#include <vector>

#include "controller/cli/render.h"
#include "muster/v1/control.pb.h"

// What a sweep for leftovers has found. Pure.

namespace muster::cli {

// True when every host has looked and nothing of a dead attempt is left there.
bool NothingLeft(const v1::CheckResponse& sweep);

// One line a host, and below it one a process: ended, still there, left alone.
std::vector<std::string> SweepLines(const v1::CheckResponse& sweep, const Style& style);

// {"hosts":[{"host","error","dead":[...],"ended":[...],"live":[...]}]}
std::string SweepJson(const v1::CheckResponse& sweep);

}  // namespace muster::cli
