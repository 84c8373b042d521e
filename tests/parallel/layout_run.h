#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/parallel/counting.h"
#include "trainer/config/train_config.h"
#include "trainer/parallel/groups.h"

// A small model that trains for some iterations on ranks that are threads, whatever the layout.

namespace muster::testing {

struct Trajectory {
  std::vector<double> losses, norms;         // of each iteration
  std::map<std::string, at::Tensor> values;  // whole parameters in the end
  // FP8 scales and histories in the end, which the ranks of a stage have alike (checked).
  std::map<std::string, at::Tensor> fp8;
};

// A model of fp64 weights that every layout of up to 8 ranks divides, with `samples` sequences an
// iteration; see layout_run.cc.
config::TrainConfig SmallConfig();

// Trains it as the ranks of this layout would; `config` has the layout's flags too. `traffic`: one
// for each rank, or null.
Trajectory TrainOn(const parallel::ParallelSizes& sizes, const config::TrainConfig& config,
                   int64_t iterations, std::vector<Traffic>* traffic = nullptr);

}  // namespace muster::testing
