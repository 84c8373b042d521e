#include "trainer/config/flag_field.h"
#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

constexpr double kShortestTimeout = 0.01;  // 0 would mean no limit to c10d

}  // namespace

std::vector<Flag> ParallelFlags() {
  const Group parallel = Group::kParallel;
  return {
      {"tensor-model-parallel-size", parallel, IntRef(FIELD(tensor_model_parallel_size)),
       "ranks that split each layer's matrices and the vocabulary", 1},
      {"sequence-parallel", parallel, BoolRef(FIELD(sequence_parallel)),
       "tensor-parallel ranks split the tokens too, where they do not split matrices"},
      {"pipeline-model-parallel-size", parallel, IntRef(FIELD(pipeline_model_parallel_size)),
       "stages that split the layers", 1},
      {"num-layers-per-virtual-pipeline-stage", parallel,
       OptionalIntRef(FIELD(num_layers_per_virtual_pipeline_stage)),
       "interleaved pipeline: layers of one of a stage's chunks", 1},
      {"num-virtual-stages-per-pipeline-rank", parallel,
       OptionalIntRef(FIELD(num_virtual_stages_per_pipeline_rank)),
       "interleaved pipeline: chunks of each stage, instead of their layers", 1},
      {"microbatch-group-size-per-virtual-pipeline-stage", parallel,
       OptionalIntRef(FIELD(microbatch_group_size_per_virtual_pipeline_stage)),
       "interleaved pipeline: micro-batches that a chunk takes in turn (default: the stages)", 1},
      {"decoder-first-pipeline-num-layers", parallel,
       OptionalIntRef(FIELD(decoder_first_pipeline_num_layers)), "layers of the first stage", 0},
      {"decoder-last-pipeline-num-layers", parallel,
       OptionalIntRef(FIELD(decoder_last_pipeline_num_layers)), "layers of the last stage", 0},
      {"account-for-embedding-in-pipeline-split", parallel,
       BoolRef(FIELD(account_for_embedding_in_pipeline_split)),
       "the embedding counts as a layer of the first stage"},
      {"account-for-loss-in-pipeline-split", parallel,
       BoolRef(FIELD(account_for_loss_in_pipeline_split)),
       "the head counts as a layer of the last stage"},
      {"context-parallel-size", parallel, IntRef(FIELD(context_parallel_size)),
       "ranks that split each sequence, attention included", 1},
      {"cp-comm-type",
       parallel,
       StringRef(FIELD(cp_comm_type)),
       "how keys and values reach context-parallel ranks: p2p = round a ring",
       {},
       {"p2p", "all_gather"}},
      {"distributed-timeout-minutes", parallel, DoubleRef(FIELD(distributed_timeout_minutes)),
       "how long a collective or the rendezvous may wait for a peer", kShortestTimeout},
      {"use-distributed-optimizer", parallel, BoolRef(FIELD(use_distributed_optimizer)),
       "data- and context-parallel ranks each keep the moments of their share (cuda: accepted)"},
      {"overlap-grad-reduce", parallel, BoolRef(FIELD(overlap_grad_reduce)),
       "accepted; gradients are reduced in one call after the last micro-batch"},
      {"overlap-param-gather", parallel, BoolRef(FIELD(overlap_param_gather)),
       "accepted; needs --use-distributed-optimizer and --overlap-grad-reduce as in Megatron"},
  };
}

}  // namespace muster::config
