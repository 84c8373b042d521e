#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/v1/job.pb.h"

// What a job's flags say about its model, in Megatron's names: the few numbers that the planner
// needs to judge a layout. Read from [flags] and from the command, so that it works for
// muster-train and for any program that takes the same flags. Pure.

namespace muster::plan {

// The flags of a job: [flags] first, else the command's words (`--name value...`, `--name=value`).
// Templates in values are not filled. Must not outlive the job.
class FlagReader {
 public:
  explicit FlagReader(const v1::JobSpec& spec) : spec_(spec) {}

  // The words after the flag, of its last place; nothing if the flag is not there.
  std::optional<std::vector<std::string>> Find(std::string_view name) const;
  bool Has(std::string_view name) const { return Find(name).has_value(); }
  // Its first word, or "".
  std::string Text(std::string_view name) const;
  // Nothing if the flag is not there or its value is no number.
  std::optional<double> Number(std::string_view name) const;
  // The same for whole numbers from 0 to 2^32 - 1.
  std::optional<uint32_t> Count(std::string_view name) const;

 private:
  const v1::JobSpec& spec_;
};

// What is computed again in the backward pass instead of being kept.
struct Recompute {
  bool full = false;            // only the input of a layer is kept
  uint32_t full_layers = 0;     // with full: so many layers of each chunk ("block"); 0 = all
  uint32_t uniform_group = 1;   // with full: one input is kept for so many layers ("uniform")
  bool norms = false;           // normalised inputs of QKV and MLP
  bool mlp = false;             // gate and up projections
  bool activation = false;      // the product that goes into fc2
  bool attention = false;       // attention output and softmax statistics
  bool attention_cast = false;  // the FP8 copy of the attention output
};

struct ModelShape {
  uint32_t layers = 0;
  uint32_t hidden = 0;
  uint32_t ffn = 0;
  uint32_t heads = 0;
  uint32_t groups = 0;  // key and value heads
  uint32_t head_dim = 0;
  bool head_dim_given = false;  // by kv-channels; else hidden / heads
  uint32_t seq = 0;
  uint32_t vocab = 0;  // without padding; 0 = not given
  uint32_t vocab_multiple = 128;
  bool gated = true;  // SwiGLU: the MLP's first product has two halves
  bool tied = false;  // the head is the embedding

  // Bytes of one value.
  bool fp8 = false;          // linear layers compute in FP8
  bool fp8_primary = false;  // ... and no other copy of their weights is kept on each rank
  double param_bytes = 2;    // of weights that are not FP8
  double grad_bytes = 4;
  double master_bytes = 4;  // 0: the weights themselves are what the optimizer updates
  double exp_avg_bytes = 4;
  double exp_avg_sq_bytes = 4;

  bool sequence_parallel = false;
  bool distributed_optimizer = false;
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  Recompute recompute;

  // Layers over pipeline stages.
  std::optional<uint32_t> first_stage_layers;
  std::optional<uint32_t> last_stage_layers;
  bool embedding_counts_as_layer = false;
  bool loss_counts_as_layer = false;

  uint64_t LayerParameters() const;                      // matrices of one layer
  uint64_t PaddedVocab(uint32_t tensor_parallel) const;  // Megatron's rule
  uint64_t Parameters() const;                           // of the whole model, unpadded
};

// Why there is no shape, or the shape. Needed: num-layers, hidden-size, num-attention-heads,
// seq-length; without vocab-size, vocab is 0.
struct ModelReading {
  std::optional<ModelShape> shape;
  std::string why_not;  // "the flags name no --num-layers ..."
};
ModelReading ReadModel(const v1::JobSpec& spec);

}  // namespace muster::plan
