#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"

// A model over a layout: which layers a pipeline stage has, and whether heads, widths and sequence
// divide. Megatron's rules. Pure.

namespace muster::plan {

struct LayerSplit {
  // Layers of [stage][chunk]; one chunk a stage without interleaving.
  std::vector<std::vector<uint32_t>> counts;
  // The first of them, in the same shape.
  std::vector<std::vector<uint32_t>> starts;

  uint32_t Layers(uint32_t stage) const;
  // "0-1, 16-17": the layers of a stage; chunk v of all stages comes before chunk v + 1.
  std::string Ranges(uint32_t stage) const;
};

// What does not divide ("80 layers do not split evenly over PP 3"), or nothing; fills `out` (may be
// null).
std::optional<std::string> SplitLayers(const ModelShape& model, uint32_t pp, uint32_t vp,
                                       LayerSplit* out);

// All that a model asks of a layout: layers, and heads, groups and MLP over TP, the sequence over
// CP and TP.
std::optional<std::string> CheckModel(const ModelShape& model, const Sizes& sizes);

}  // namespace muster::plan
