#include "controller/plan/memory.h"

#include <algorithm>

#include "controller/plan/widths.h"

namespace muster::plan {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
// Assumed: cuBLAS and cuDNN workspaces under 0.5 GiB, the CUDA context 0.5 to 1 GiB.
constexpr double kWorkspaces = 1.5 * kGiB;

constexpr double kHalf = 2;       // bytes of bf16
constexpr double kQuantised = 1;  // bytes of FP8
constexpr double kFloat = 4;

// The input of a layer, which is what full recomputation keeps.
double LayerInputBytes(const ModelShape& m, const Sizes& s) {
  const double share = m.sequence_parallel ? s.tp : 1;
  const Widths w = WidthsOf(m, s);
  return kHalf * w.tokens * w.hidden / share;
}

// All that a layer keeps without full recomputation.
double WholeLayerBytes(const ModelShape& m, const Sizes& s) {
  const Widths w = WidthsOf(m, s);
  const Recompute& r = m.recompute;
  const double tp = s.tp;
  const double sequence_share =
      m.sequence_parallel ? tp : 1;                   // outside of the tensor-parallel part
  const double operand = m.fp8 ? kQuantised : kHalf;  // what a linear layer keeps of its input
  const auto unless = [](bool recomputed, double bytes) { return recomputed ? 0 : bytes; };

  double replicated = 2 * kHalf * w.hidden + 2 * kFloat;  // two residuals, two norms' statistics
  replicated += unless(r.norms, 2 * operand * w.hidden);  // inputs of QKV and MLP
  double split = kHalf * w.Qkv();                         // after RoPE
  split += unless(r.attention, kHalf * w.attention + kFloat * w.heads);
  if (m.fp8) split += unless(r.attention_cast, kQuantised * w.attention);
  split += unless(r.mlp, kHalf * (m.gated ? 2 : 1) * w.ffn);
  split += unless(r.activation, operand * w.ffn);
  return w.tokens * (replicated / sequence_share + split / tp);
}

// Bytes of a stage's layers for one micro-batch in flight, and what is there once beside them.
struct StageActivations {
  double each;
  double once;
};

StageActivations ActivationsOf(const ModelShape& m, const Sizes& s, double layers, double chunks) {
  const double whole = WholeLayerBytes(m, s);
  if (!m.recompute.full) return {layers * whole, 0};
  const double input = LayerInputBytes(m, s);
  if (m.recompute.full_layers == 0) {
    const double group = std::min<double>(m.recompute.uniform_group, std::max(1.0, layers));
    return {layers / group * input, group * whole};
  }
  const double recomputed = std::min<double>(m.recompute.full_layers * chunks, layers);
  return {recomputed * input + (layers - recomputed) * whole, recomputed > 0 ? whole : 0};
}

double OptimizerBytes(const ModelShape& m) {
  return m.master_bytes + m.exp_avg_bytes + m.exp_avg_sq_bytes;
}

}  // namespace

double LayerActivationBytes(const ModelShape& m, const Sizes& s) {
  return WholeLayerBytes(m, s);
}

double MicrobatchesInFlight(const Sizes& s, uint32_t stage) {
  const double behind = s.pp - 1.0 - stage;
  if (s.vp == 1) return std::min<double>(behind + 1, s.num_microbatches);
  // Warm-up of the interleaved schedule, and the chunk that is being computed.
  const double chunks = 2 * behind + (s.vp - 1.0) * s.pp + 1;
  return std::min<double>(chunks, static_cast<double>(s.num_microbatches) * s.vp) / s.vp;
}

StageParameters ParametersOf(const ModelShape& m, const Sizes& s, const LayerSplit& split,
                             uint32_t stage) {
  StageParameters out;
  const double layers = split.Layers(stage);
  const double table = static_cast<double>(m.PaddedVocab(s.tp)) * m.hidden / s.tp;
  const bool first = stage == 0;
  const bool last = stage + 1 == s.pp;
  out.linear = layers * static_cast<double>(m.LayerParameters()) / s.tp;
  out.norms = layers * 2 * m.hidden;
  if (first) out.tables += table;
  if (last) {
    // A tied head on another stage than the embedding is a copy of it.
    if (!m.tied || !first) out.tables += table;
    out.norms += m.hidden;
  }
  return out;
}

MemoryParts StageMemory(const ModelShape& m, const Sizes& s, const LayerSplit& split,
                        uint32_t stage) {
  const StageParameters p = ParametersOf(m, s, split, stage);
  MemoryParts out;
  out.weights = (p.tables + p.norms) * m.param_bytes +
                p.linear * (m.fp8_primary ? kQuantised : m.param_bytes);
  if (m.fp8) out.fp8_copies = p.linear * kQuantised * (m.fp8_primary ? 1 : 2);
  out.gradients = p.Total() * m.grad_bytes;
  const double shards = m.distributed_optimizer ? static_cast<double>(s.dp) * s.cp : 1;
  out.optimizer = p.Total() * OptimizerBytes(m) / shards;
  const StageActivations kept =
      ActivationsOf(m, s, split.Layers(stage), static_cast<double>(split.counts[stage].size()));
  out.activations = kept.each * MicrobatchesInFlight(s, stage) + kept.once;
  if (stage + 1 == s.pp) {
    out.logits = kHalf * WidthsOf(m, s).tokens * static_cast<double>(m.PaddedVocab(s.tp)) / s.tp;
  }
  out.workspaces = kWorkspaces;
  return out;
}

std::vector<MemoryParts> AllStages(const ModelShape& m, const Sizes& s, const LayerSplit& split) {
  std::vector<MemoryParts> out;
  out.reserve(s.pp);
  for (uint32_t stage = 0; stage < s.pp; ++stage) out.push_back(StageMemory(m, s, split, stage));
  return out;
}

double LargestStage(const std::vector<MemoryParts>& stages) {
  double out = 0;
  for (const MemoryParts& stage : stages) out = std::max(out, stage.Total());
  return out;
}

}  // namespace muster::plan
