#include "controller/plan/model_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "controller/plan/trainer_flags.h"

namespace muster::plan {
namespace {

struct Needed {
  std::string_view flag;
  uint32_t ModelShape::*field;
};
constexpr std::array kNeeded = {
    Needed{"num-layers", &ModelShape::layers},
    Needed{"hidden-size", &ModelShape::hidden},
    Needed{"num-attention-heads", &ModelShape::heads},
    Needed{"seq-length", &ModelShape::seq},
};

double DtypeBytes(const std::string& name, double otherwise) {
  if (name == "fp32") return 4;
  if (name == "fp16" || name == "bf16") return 2;
  if (name == "fp8") return 1;
  return otherwise;
}

void ReadSizes(const FlagReader& flags, bool trainer, ModelShape& m) {
  m.gated = trainer || flags.Has("swiglu");
  // Megatron's default sizes of the MLP.
  const uint64_t plain = 4ULL * m.hidden;
  const uint64_t usual = m.gated ? plain * 2 / 3 / 64 * 64 : plain;
  const bool wide = usual > std::numeric_limits<uint32_t>::max();
  m.ffn = flags.Count("ffn-hidden-size").value_or(wide ? 0 : static_cast<uint32_t>(usual));
  m.groups = m.heads;
  if (flags.Has("group-query-attention")) m.groups = flags.Count("num-query-groups").value_or(1);
  m.head_dim_given = flags.Count("kv-channels").has_value();
  m.head_dim = flags.Count("kv-channels").value_or(m.hidden / m.heads);
  m.vocab = flags.Count("vocab-size").value_or(0);
  m.vocab_multiple = flags.Count("make-vocab-size-divisible-by").value_or(128);
  m.tied = !flags.Has("untie-embeddings-and-output-weights");
}

void ReadPrecision(const FlagReader& flags, bool trainer, ModelShape& m) {
  const bool half =
      flags.Has("bf16") || flags.Has("fp16") || DtypeBytes(flags.Text("params-dtype"), 4) == 2;
  m.fp8 = flags.Has("fp8-format") || flags.Has("fp8");
  m.fp8_primary = m.fp8 && (trainer || flags.Has("fp8-param-gather"));
  m.param_bytes = half ? 2 : 4;
  // muster-train keeps master weights; Megatron does for half precision.
  m.master_bytes = half || m.fp8_primary ? DtypeBytes(flags.Text("main-params-dtype"), 4) : 0;
  m.grad_bytes =
      flags.Has("grad-reduce-in-bf16") ? 2 : DtypeBytes(flags.Text("main-grads-dtype"), 4);
  // muster-train has bf16 moments on GPUs unless it is told otherwise, both alike.
  const double moments = trainer && flags.Text("device") == "cuda" ? 2 : 4;
  m.exp_avg_bytes = DtypeBytes(flags.Text("exp-avg-dtype"), moments);
  m.exp_avg_sq_bytes =
      DtypeBytes(flags.Text("exp-avg-sq-dtype"), trainer ? m.exp_avg_bytes : moments);
}

void ReadRecompute(const FlagReader& flags, Recompute& out) {
  const std::string granularity = flags.Text("recompute-granularity");
  if (granularity == "full") {
    out.full = true;
    const uint32_t layers = flags.Count("recompute-num-layers").value_or(1);
    if (flags.Text("recompute-method") == "block") {
      out.full_layers = layers;
    } else {
      out.uniform_group = std::max(1U, layers);
    }
    return;
  }
  if (granularity != "selective" && !flags.Has("recompute-activations")) return;
  const std::vector<std::string> modules =
      flags.Find("recompute-modules").value_or(std::vector<std::string>{"core_attn"});
  for (const std::string& module : modules) {
    if (module == "core_attn") out.attention = out.attention_cast = true;
    if (module == "layernorm") out.norms = true;
    if (module == "mlp") out.mlp = out.activation = true;
    if (module == "mlp_act") out.activation = true;
  }
}

void ReadParallel(const FlagReader& flags, ModelShape& m) {
  m.sequence_parallel = flags.Has("sequence-parallel");
  m.distributed_optimizer = flags.Has("use-distributed-optimizer");
  m.overlap_grad_reduce = flags.Has("overlap-grad-reduce");
  m.overlap_param_gather = flags.Has("overlap-param-gather");
  m.first_stage_layers = flags.Count("decoder-first-pipeline-num-layers");
  m.last_stage_layers = flags.Count("decoder-last-pipeline-num-layers");
  m.embedding_counts_as_layer = flags.Has("account-for-embedding-in-pipeline-split");
  m.loss_counts_as_layer = flags.Has("account-for-loss-in-pipeline-split");
}

}  // namespace

uint64_t ModelShape::LayerParameters() const {
  const uint64_t h = hidden;
  const uint64_t qkv = (uint64_t{heads} + 2ULL * groups) * head_dim;
  return h * qkv + uint64_t{heads} * head_dim * h + (gated ? 3 : 2) * h * ffn;
}

uint64_t ModelShape::PaddedVocab(uint32_t tensor_parallel) const {
  const uint64_t multiple = uint64_t{vocab_multiple} * tensor_parallel;
  return multiple == 0 ? vocab : (vocab + multiple - 1) / multiple * multiple;
}

uint64_t ModelShape::Parameters() const {
  const uint64_t h = hidden;
  const uint64_t tables = tied ? 1 : 2;
  return layers * (LayerParameters() + 2 * h) + tables * vocab * h + h;
}

ModelReading ReadModel(const v1::JobSpec& spec) {
  const FlagReader flags(spec);
  ModelShape m;
  std::string missing;
  for (const Needed& needed : kNeeded) {
    m.*needed.field = flags.Count(needed.flag).value_or(0);
    if (m.*needed.field == 0)
      missing += fmt::format("{}--{}", missing.empty() ? "" : ", ", needed.flag);
  }
  if (!missing.empty()) return {std::nullopt, "the job's flags do not give " + missing};
  const bool trainer = IsTrainer(spec);
  ReadSizes(flags, trainer, m);
  if (m.ffn == 0 || m.groups == 0 || m.head_dim == 0) {
    return {std::nullopt, "the job's flags give a width of 0, or one beyond 2^32 - 1"};
  }
  ReadPrecision(flags, trainer, m);
  ReadRecompute(flags, m.recompute);
  // On GPUs in bf16, muster-train never keeps it.
  if (trainer && flags.Text("device") == "cuda" && !m.fp8) m.recompute.activation = true;
  ReadParallel(flags, m);
  return {m, ""};
}

}  // namespace muster::plan
