#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"
#include "muster/v1/job.pb.h"

// What is allowed in a training job and probably not wanted. Pure.

namespace muster::plan {

// From the flags alone. `model` may be null.
std::vector<std::string> ModelWarnings(const v1::JobSpec& spec, const Sizes& sizes,
                                       const ModelShape* model);

// A data file of the job as found where the plan is made.
struct DataFile {
  std::string prefix;  // as in --data-path
  uint64_t tokens = 0;
};
// --data-path without weights.
std::vector<std::string> DataPrefixes(const v1::JobSpec& spec);
// Too short for one sequence, or seen many times.
std::vector<std::string> DataWarnings(const v1::JobSpec& spec, const v1::Plan& plan,
                                      const std::vector<DataFile>& files);

}  // namespace muster::plan
