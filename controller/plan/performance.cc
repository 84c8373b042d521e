#include "controller/plan/performance.h"

#include <algorithm>
#include <cmath>

#include "controller/plan/memory.h"
#include "controller/plan/widths.h"

namespace muster::plan {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kMicro = 1e-6;
constexpr double kHalf = 2;           // bytes of bf16
constexpr double kPasses = 3;         // forward, and two products in the backward pass
constexpr double kPerMac = 2;         // operations of a multiply-add
constexpr double kForward = 1.0 / 3;  // of a micro-batch's time

// How a group of `size` ranks, `stride` apart, reaches its members.
struct Link {
  double bytes_per_second;
  double start_seconds;  // of one collective
  bool between_hosts;
};

Link LinkOf(double size, double stride, double ranks_per_host, const Constants& c) {
  const double here = std::max(1.0, std::min(size, std::floor(ranks_per_host / stride)));
  if (here >= size) return {c.intra_host_gb_s * kGiga, c.intra_host_us * kMicro, false};
  // Every member on a host drives its own adapter.
  const double rate = std::min(c.intra_host_gb_s, here * c.inter_host_gb_s);
  return {rate * kGiga, c.inter_host_us * kMicro, true};
}

// Seconds of one layer for a micro-batch, forward and backward.
struct LayerTime {
  double attention;
  double compute;  // with attention
};

LayerTime TimeOfLayer(const ModelShape& m, const Sizes& s, const Constants& c) {
  const Widths w = WidthsOf(m, s);
  const double linear_rate = (m.fp8 ? c.fp8_tflops : c.bf16_tflops) * kTera * s.tp;
  const double attention_rate = c.attention_tflops * kTera * s.tp;
  const double linear = kPerMac * static_cast<double>(m.LayerParameters()) * w.tokens / linear_rate;
  // QK^T and PV, halved by causality.
  const double attention = kPerMac * w.attention * m.seq * w.tokens / attention_rate;
  // Norms and residuals are split by sequence parallelism only; RoPE, casts and SwiGLU always.
  const double share = m.sequence_parallel ? s.tp : 1;
  const double bytes = w.tokens * (45 * w.hidden / share + (4 * w.Qkv() + 16 * w.ffn) / s.tp);
  const double passes = kPasses + (m.recompute.full ? 1 : 0);
  LayerTime out{};
  out.attention = passes * attention;
  out.compute = passes * (linear + attention) + bytes / (c.memory_gb_s * kGiga);
  return out;
}

double TimeOfHead(const ModelShape& m, const Sizes& s, const Constants& c) {
  const Widths w = WidthsOf(m, s);
  const double parameters = static_cast<double>(m.PaddedVocab(s.tp)) * w.hidden / s.tp;
  return kPasses * kPerMac * parameters * w.tokens / (c.bf16_tflops * kTera);
}

// A collective over a group, of a micro-batch or a step.
struct Transfer {
  double bytes = 0;
  double seconds = 0;
  bool between_hosts = false;
};

// Of one layer and micro-batch: all-gathers and reduce-scatters with sequence parallelism (ten,
// since the backward pass gathers its inputs again), four all-reduces without.
Transfer TensorTransfer(const ModelShape& m, const Sizes& s, double ranks_per_host,
                        const Constants& c) {
  if (s.tp == 1) return {};
  const Widths w = WidthsOf(m, s);
  const Link link = LinkOf(s.tp, 1, ranks_per_host, c);
  const double piece = kHalf * w.tokens * w.hidden * (s.tp - 1) / s.tp;
  const double collectives = m.sequence_parallel ? 10 : 4;
  const double bytes = piece * (m.sequence_parallel ? 10 : 8);
  return {bytes, bytes / link.bytes_per_second + collectives * link.start_seconds,
          link.between_hosts};
}

// Keys and values around the ring: once forward, twice backward (with their gradients).
Transfer ContextTransfer(const ModelShape& m, const Sizes& s, double ranks_per_host,
                         const Constants& c) {
  if (s.cp == 1) return {};
  const Widths w = WidthsOf(m, s);
  const Link link = LinkOf(s.cp, s.tp, ranks_per_host, c);
  const double bytes = kPasses * (s.cp - 1) * kHalf * w.tokens * w.keys / s.tp;
  return {bytes, bytes / link.bytes_per_second + kPasses * (s.cp - 1) * link.start_seconds,
          link.between_hosts};
}

// Activations to the next stage and gradients back, for one micro-batch and all chunks.
Transfer PipelineTransfer(const ModelShape& m, const Sizes& s, double ranks_per_host,
                          const Constants& c) {
  if (s.pp == 1) return {};
  const Widths w = WidthsOf(m, s);
  const double stride = static_cast<double>(s.tp) * s.cp * s.dp;
  const Link link = LinkOf(s.pp, stride, ranks_per_host, c);
  const double share = m.sequence_parallel ? s.tp : 1;
  const double sends = 2.0 * s.vp;
  const double bytes = sends * kHalf * w.tokens * w.hidden / share;
  // A send uses one pair of devices, whatever the others do.
  const double rate = (link.between_hosts ? c.inter_host_gb_s : c.intra_host_gb_s) * kGiga;
  return {bytes, bytes / rate + sends * link.start_seconds, link.between_hosts};
}

struct Reduction {
  Transfer gradients;
  Transfer gather;
};

Reduction DataTransfer(const ModelShape& m, const Sizes& s, const StageParameters& p,
                       double ranks_per_host, const Constants& c) {
  const double size = static_cast<double>(s.dp) * s.cp;
  if (size <= 1) return {};
  const Link link = LinkOf(size, s.tp, ranks_per_host, c);
  const double share = (size - 1) / size;
  const double times = m.distributed_optimizer ? 1 : 2;  // reduce-scatter, or all-reduce
  Reduction out;
  out.gradients.bytes = times * share * p.Total() * m.grad_bytes;
  if (m.distributed_optimizer) {
    out.gather.bytes = share * ((p.tables + p.norms) * m.param_bytes +
                                p.linear * (m.fp8_primary ? 1 : m.param_bytes));
  }
  for (Transfer* transfer : {&out.gradients, &out.gather}) {
    transfer->between_hosts = link.between_hosts;
    transfer->seconds = transfer->bytes / link.bytes_per_second + link.start_seconds;
  }
  return out;
}

double TimeOfOptimizer(const ModelShape& m, const Sizes& s, const StageParameters& p,
                       const Constants& c) {
  const double shards = m.distributed_optimizer ? static_cast<double>(s.dp) * s.cp : 1;
  const double master = m.master_bytes > 0 ? m.master_bytes : m.param_bytes;
  // State is read and written, gradients are read for the norm and for the update, weights written.
  const double bytes =
      2 * (master + m.exp_avg_bytes + m.exp_avg_sq_bytes) + 2 * m.grad_bytes + m.param_bytes;
  return p.Total() / shards * bytes / (c.optimizer_gb_s * kGiga);
}

}  // namespace

double BubbleFraction(const Sizes& s) {
  const double waits = s.pp - 1.0;
  return waits / (static_cast<double>(s.vp) * s.num_microbatches + waits);
}

double FlopsPerToken(const ModelShape& m) {
  const double attention = static_cast<double>(m.heads) * m.head_dim;
  return kPasses * kPerMac *
         (m.layers * (static_cast<double>(m.LayerParameters()) + attention * m.seq) +
          static_cast<double>(m.hidden) * static_cast<double>(m.PaddedVocab(1)));
}

Performance Predict(const ModelShape& m, const Sizes& s, const LayerSplit& split,
                    uint32_t ranks_per_host, const Constants& c) {
  const double per_host = ranks_per_host;
  const double m_count = s.num_microbatches;
  const LayerTime layer = TimeOfLayer(m, s, c);
  const Transfer tp = TensorTransfer(m, s, per_host, c);
  const Transfer cp = ContextTransfer(m, s, per_host, c);
  const Transfer pp = PipelineTransfer(m, s, per_host, c);
  const double cp_exposed = std::max(0.0, cp.seconds - layer.attention);
  const double busy = 1 + c.idle_fraction;

  // The slowest stage sets the pace; the others' mean fills and drains the pipeline.
  uint32_t slowest = 0;
  double slowest_time = 0;
  double sum = 0;
  for (uint32_t stage = 0; stage < s.pp; ++stage) {
    const double layers = split.Layers(stage);
    double time = layers * (layer.compute * busy + tp.seconds + cp_exposed);
    if (stage + 1 == s.pp) time += TimeOfHead(m, s, c) * busy;
    sum += time;
    if (time > slowest_time) {
      slowest_time = time;
      slowest = stage;
    }
  }
  const double layers = split.Layers(slowest);
  const StageParameters parameters = ParametersOf(m, s, split, slowest);
  const Reduction dp = DataTransfer(m, s, parameters, per_host, c);

  Performance out;
  StepTime& t = out.step;
  t.tp = m_count * layers * tp.seconds;
  t.cp = m_count * layers * cp_exposed;
  t.compute = m_count * slowest_time - t.tp - t.cp;
  // Interleaving hides sends behind other chunks.
  t.pp = s.vp > 1 ? 0 : m_count * pp.seconds;
  t.bubble = (sum - slowest_time) / s.vp;
  const double backward = (1 - kForward) * slowest_time;
  const double forward = kForward * slowest_time;
  t.dp = std::max(0.0, dp.gradients.seconds - (m.overlap_grad_reduce ? backward : 0)) +
         std::max(0.0, dp.gather.seconds - (m.overlap_param_gather ? forward : 0));
  t.optimizer = TimeOfOptimizer(m, s, parameters, c);

  CommVolume& v = out.volume;
  v.tp = m_count * layers * tp.bytes;
  v.cp = m_count * layers * cp.bytes;
  v.pp = m_count * pp.bytes;
  v.dp = dp.gradients.bytes + dp.gather.bytes;
  v.between_hosts = (tp.between_hosts ? v.tp : 0) + (cp.between_hosts ? v.cp : 0) +
                    (pp.between_hosts ? v.pp : 0) + (dp.gradients.between_hosts ? v.dp : 0);

  out.tokens_per_second = static_cast<double>(s.global_batch) * m.seq / t.Total();
  out.tokens_per_second_per_rank = out.tokens_per_second / s.world;
  out.tflops_per_rank = out.tokens_per_second_per_rank * FlopsPerToken(m) / kTera;
  return out;
}

}  // namespace muster::plan
