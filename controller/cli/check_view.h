#pragma once

#include <string>

#include "controller/cli/render.h"
#include "muster/v1/control.pb.h"

// What `muster check` found, for people and for programs. Pure.

namespace muster::cli {

// "error", "warning", "note": how many.
size_t CountFindings(const v1::CheckResponse& response, const std::string& severity);

// 120 with an error, else 0.
int CheckExitCode(const v1::CheckResponse& response);

// The summary, then the findings, worst first; hosts with the same one share it.
std::string CheckText(const v1::CheckResponse& response, const Style& style);

// A line a host: devices, interface, clock, limits, versions.
std::string CheckTable(const v1::CheckResponse& response, const Style& style);

std::string CheckJson(const v1::CheckResponse& response);

// "3m 12s ago: ok", "5 s ago: 2 errors"; "-" for a node that was never checked.
std::string LastCheck(const v1::Node& node, int64_t now_ns);

}  // namespace muster::cli
