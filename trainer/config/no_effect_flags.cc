#include "trainer/config/flag_table.h"

namespace muster::config {
namespace {

Flag Bare(std::string_view name, std::string_view why) {
  return {name, Group::kNoEffect, Words::kNone, why};
}
Flag One(std::string_view name, std::string_view why) {
  return {name, Group::kNoEffect, Words::kOne, why};
}
Flag Many(std::string_view name, std::string_view why) {
  return {name, Group::kNoEffect, Words::kMany, why};
}

constexpr std::string_view kAlways = "always so here";
constexpr std::string_view kPython = "about Python; there is none here";
constexpr std::string_view kCuda = "about CUDA memory or kernels; the numbers stay the same";
constexpr std::string_view kFsdp =
    "about fully sharded data parallelism; state is on every rank in this version";
constexpr std::string_view kOverlap = "about overlap of communication; the numbers stay the same";
constexpr std::string_view kFormat = "checkpoints have one format here (docs/training.md)";
constexpr std::string_view kBoard =
    "no TensorBoard files in this version; MUSTER_EVENT_FD carries the figures";

}  // namespace

std::vector<Flag> NoEffectFlags() {
  return {
      Bare("use-mcore-models", kAlways),
      One("transformer-impl", "one implementation here"),
      Bare("swiglu", kAlways),
      Bare("disable-bias-linear", kAlways),
      Bare("use-rotary-position-embeddings", kAlways),
      One("attention-backend", kCuda),
      Bare("use-flash-attn", kCuda),
      Bare("cross-entropy-loss-fusion", kCuda),
      One("cross-entropy-fusion-impl", kCuda),
      Bare("no-gradient-accumulation-fusion", kCuda),
      Bare("no-masked-softmax-fusion", kCuda),
      Bare("no-bias-swiglu-fusion", kCuda),
      Bare("no-rope-fusion", kCuda),
      Bare("no-persist-layer-norm", kCuda),
      Bare("attention-softmax-in-fp32", kAlways),
      Bare("accumulate-allreduce-grads-in-fp32", "the default here, unless --grad-reduce-in-bf16"),
      Bare("use-precision-aware-optimizer", "--exp-avg-dtype says how moments are kept"),
      One("empty-unused-memory-level", kCuda),
      Bare("manual-gc", kPython),
      One("manual-gc-interval", kPython),
      Bare("no-manual-gc-eval", kPython),
      Bare("tokenizer-hf-no-include-special-tokens",
           "about encoding text, as muster-preprocess does"),
      One("num-workers", "batches are read in the training thread"),
      One("data-impl", kAlways),
      Bare("create-attention-mask-in-dataloader", "the mask is made in the kernel"),
      One("num-dataset-builder-threads", "indices are built on all cores"),
      Bare("use-megatron-fsdp", kFsdp),
      Bare("use-custom-fsdp", kFsdp),
      One("data-parallel-sharding-strategy", kFsdp),
      Bare("init-model-with-meta-device", kFsdp),
      Bare("use-nccl-ub", kFsdp),
      Bare("nccl-ub", kFsdp),
      Bare("fsdp-double-buffer", kFsdp),
      Bare("fsdp-manual-registration", kFsdp),
      Bare("tp-comm-overlap", kOverlap),
      Bare("no-overlap-p2p-communication", kOverlap),
      Bare("align-param-gather", kOverlap),
      One("ddp-bucket-size", kOverlap),
      One("ddp-num-buckets", kOverlap),
      Bare("ddp-average-in-collective", "sums are divided after the reduction"),
      One("distributed-backend", "chosen by --device"),
      Bare("use-tp-pp-dp-mapping", "ranks are ordered as Megatron orders them without it"),
      One("local-rank", "LOCAL_RANK counts"),
      One("rerun-mode", "a loss or gradient that is not finite ends the run"),
      One("ckpt-format", kFormat),
      Bare("use-dist-ckpt", kFormat),
      Bare("auto-detect-ckpt-format", kFormat),
      One("dist-ckpt-format", kFormat),
      Bare("ckpt-fully-parallel-load", kFormat),
      Bare("no-ckpt-fully-parallel-save", kFormat),
      One("dist-ckpt-strictness", kFormat),
      Bare("async-save", "saves are synchronous in this version"),
      Bare("no-load-rng", "no random number is drawn after the first weights"),
      Bare("no-save-rng", "no random number is drawn after the first weights"),
      One("tensorboard-dir", kBoard),
      One("tensorboard-log-interval", kBoard),
      One("tensorboard-queue-size", kBoard),
      Bare("log-timers-to-tensorboard", kBoard),
      Bare("log-validation-ppl-to-tensorboard", kBoard),
      Bare("log-memory-to-tensorboard", kBoard),
      Bare("log-world-size-to-tensorboard", kBoard),
      One("logging-level", "one level here"),
      Bare("log-progress", "iteration lines say it"),
      One("timing-log-level", "no timers in this version"),
      Bare("profile", "no profiler ranges in this version"),
      One("profile-step-start", "no profiler ranges in this version"),
      One("profile-step-end", "no profiler ranges in this version"),
      Many("profile-ranks", "no profiler ranges in this version"),
      Bare("use-pytorch-profiler", "no profiler ranges in this version"),
      Bare("record-memory-history", "no CUDA memory here"),
      One("memory-snapshot-path", "no CUDA memory here"),
      One("wandb-project", "no Weights & Biases here"),
      One("wandb-exp-name", "no Weights & Biases here"),
      One("wandb-save-dir", "no Weights & Biases here"),
      Bare("check-for-nan-in-loss-and-grad", kAlways),
  };
}

}  // namespace muster::config
