#pragma once

#include <string>

#include "muster/v1/control.pb.h"

// The --json forms of what the controller knows: one JSON value each, without a newline.
// docs/cli.md describes them. Bytes that are not UTF-8 become U+FFFD. Pure.

namespace muster::cli {

// How a job stands or ended:
// {"job","name","state","cause","code","rank","host","signal","message","output_dir",...}.
std::string JobJson(const v1::Job& job);

std::string JobListJson(const v1::ListJobsResponse& jobs);
std::string NodeListJson(const v1::ListNodesResponse& nodes);
std::string InfoJson(const std::string& client_version, const v1::InfoResponse* controller);

// {"error":{"code":2,"message":"..."}}
std::string ErrorJson(int code, const std::string& message);

}  // namespace muster::cli
