#pragma once

#include <string>
#include <vector>

#include "controller/plan/model_warnings.h"

namespace muster::cli {

// How many tokens the Megatron files PREFIX.bin and PREFIX.idx hold, for those that are here;
// relative prefixes are below `working_dir`. What is not here or not readable is left out: it may
// well be on the nodes, where preflight looks.
std::vector<plan::DataFile> FindDataFiles(const std::vector<std::string>& prefixes,
                                          const std::string& working_dir);

}  // namespace muster::cli
