#pragma once

#include <string>
#include <vector>

#include "controller/cli/render.h"
#include "controller/why/why.h"
#include "muster/v1/control.pb.h"

// How a job ended, for a person. Pure.

namespace muster::cli {

// "3 (tiny_cpu)": a job's number and name.
std::string JobTitle(const v1::Job& job);

// One line a node with the proof of its end: `127.0.0.2  clean  2 ranks ended, 0 left`, or the
// survivors by name.
std::vector<std::string> NodeLines(const v1::Job& job, const Style& style);

// True when every node of the job has proved its end.
bool AllClean(const v1::Job& job);

// The screen of `muster why`, which is also the end of `muster submit`.
std::vector<std::string> WhyLines(const why::Why& why, const Style& style);

}  // namespace muster::cli
