#pragma once

#include "controller/plan/model_shape.h"
#include "controller/plan/sizes.h"
#include "plan_testing.h"

// Models and sizes that the tests of this folder share.

namespace muster::plan {

// Llama-3 8B in FP8 with options A of docs/planning.md: fp32 gradients and optimizer state.
inline ModelShape Llama8b() {
  ModelShape m;
  m.layers = 32;
  m.hidden = 4096;
  m.ffn = 14336;
  m.heads = 32;
  m.groups = 8;
  m.head_dim = 128;
  m.seq = 8192;
  m.vocab = 128256;
  m.fp8 = m.fp8_primary = true;
  return m;
}

inline Sizes SomeSizes(uint32_t tp, uint32_t pp, uint32_t cp, uint32_t dp, uint32_t micro_batch,
                       uint32_t num_microbatches, uint32_t vp = 1) {
  Sizes s;
  s.world = tp * pp * cp * dp;
  s.tp = tp;
  s.pp = pp;
  s.cp = cp;
  s.dp = dp;
  s.vp = vp;
  s.micro_batch = micro_batch;
  s.num_microbatches = num_microbatches;
  s.global_batch = micro_batch * num_microbatches * dp;
  return s;
}

// A trainer job with the 8B's flags; `more` comes last.
inline v1::JobSpec Trainer8b(std::string_view hostfile, const v1::Parallel& parallel,
                             const std::vector<std::pair<std::string, std::string>>& more = {}) {
  v1::JobSpec spec = Job(hostfile, {"muster-train"});
  *spec.mutable_parallel() = parallel;
  std::vector<std::pair<std::string, std::string>> flags = {
      {"num-layers", "32"},
      {"hidden-size", "4096"},
      {"ffn-hidden-size", "14336"},
      {"num-attention-heads", "32"},
      {"group-query-attention", ""},
      {"num-query-groups", "8"},
      {"seq-length", "8192"},
      {"vocab-size", "128256"},
      {"untie-embeddings-and-output-weights", ""},
      {"rotary-base", "500000"},
      {"bf16", ""},
      {"fp8-format", "hybrid"},
      {"use-distributed-optimizer", ""},
  };
  flags.insert(flags.end(), more.begin(), more.end());
  for (const auto& [name, value] : flags) {
    v1::Flag& flag = *spec.add_flags();
    flag.set_name(name);
    if (!value.empty()) flag.add_values(value);
  }
  return spec;
}

}  // namespace muster::plan
