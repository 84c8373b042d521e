#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "controller/plan/layer_split.h"
#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"

// Device memory of a rank, by part. The formulas, and where each number comes from, are in
// docs/planning.md. Pure.

namespace muster::plan {

// Bytes.
struct MemoryParts {
  double weights = 0;      // what the products read: FP8 or bf16, with embedding and head
  double fp8_copies = 0;   // transposed weights, and FP8 ones beside bf16
  double gradients = 0;    // the buffer that micro-batches add to
  double optimizer = 0;    // master weights and both moments
  double activations = 0;  // kept for the backward pass, of all micro-batches in flight
  double logits = 0;       // last stage only
  double workspaces = 0;   // libraries and the CUDA context

  double Total() const {
    return weights + fp8_copies + gradients + optimizer + activations + logits + workspaces;
  }
};

struct MemoryPart {
  std::string_view name;
  double MemoryParts::*field;
};
// All parts, in the order in which they are shown.
inline constexpr std::array<MemoryPart, 7> kMemoryParts = {{
    {"weights", &MemoryParts::weights},
    {"FP8 copies", &MemoryParts::fp8_copies},
    {"gradients", &MemoryParts::gradients},
    {"optimizer", &MemoryParts::optimizer},
    {"activations", &MemoryParts::activations},
    {"logits", &MemoryParts::logits},
    {"workspaces", &MemoryParts::workspaces},
}};

// Bytes that one layer keeps of one micro-batch on one rank.
double LayerActivationBytes(const ModelShape& model, const Sizes& sizes);

// How many micro-batches' activations of a whole stage are kept at the peak of the 1F1B schedule
// (a fraction with virtual stages: chunks in flight / chunks a stage).
double MicrobatchesInFlight(const Sizes& sizes, uint32_t stage);

// Parameters of a stage on one rank: in FP8-capable matrices, in embedding and head, and in norms.
struct StageParameters {
  double linear = 0;
  double tables = 0;
  double norms = 0;
  double Total() const { return linear + tables + norms; }
};
StageParameters ParametersOf(const ModelShape& model, const Sizes& sizes, const LayerSplit& split,
                             uint32_t stage);

// All ranks of a stage need the same. The model's vocabulary is known.
MemoryParts StageMemory(const ModelShape& model, const Sizes& sizes, const LayerSplit& split,
                        uint32_t stage);

// Of all stages; the largest is what has to fit.
std::vector<MemoryParts> AllStages(const ModelShape& model, const Sizes& sizes,
                                   const LayerSplit& split);
double LargestStage(const std::vector<MemoryParts>& stages);

}  // namespace muster::plan
