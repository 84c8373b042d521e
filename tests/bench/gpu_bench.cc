// The training step of a Llama on one GPU, held for a while: tokens per second, energy, and with
// --profile the time of each kernel.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/gpu_main.h"
#include "tests/bench/gpu_models.h"
#include "tests/bench/gpu_watch.h"
#include "tests/bench/report.h"
#include "trainer/device/cuda_ops.h"
#include "trainer/device/energy.h"
#include "trainer/device/model.h"
#include "trainer/device/optimizer.h"
#include "trainer/loop/flops.h"
#include "trainer/optim/gradients.h"
#include "trainer/tensor/cuda_check.h"

namespace muster::bench {
namespace {

struct Options {
  std::string model = "8b";
  std::vector<std::string> recipes = {"delayed"};
  int64_t seq = 8192, micro_batch = 1, sequences = 16, layers = 0, head_tokens = 8192,
          recomputed = 0, candidates = 32;
  double seconds = 60;
  std::string fast = "forward";
  bool eager = false, deterministic = false, fp32_moments = false, bf16_gradients = false,
       recompute_swiglu = false, profile = false, json = false;
  std::string cache;
  std::vector<std::string> references;
};

fp8::cuda::FastAccumulation Fast(const std::string& name) {
  return {.forward = name != "none",
          .input_gradient = name == "input" || name == "all",
          .weight_gradient = name == "all"};
}

// Of row names: what differs from the headline.
std::string Suffix(const Options& options) {
  std::string text;
  if (options.seq != 8192) text += ".seq" + std::to_string(options.seq);
  if (options.micro_batch != 1) text += ".mbs" + std::to_string(options.micro_batch);
  if (options.sequences != 16) text += ".gbs" + std::to_string(options.sequences);
  if (options.recomputed > 0) text += ".recompute" + std::to_string(options.recomputed);
  if (options.recompute_swiglu) text += ".recompute_swiglu";
  if (options.bf16_gradients) text += ".bf16_gradients";
  if (options.fast != "forward") text += ".fast_" + options.fast;
  if (options.deterministic) text += ".deterministic";
  if (options.eager) text += ".eager";
  return text;
}

// Low enough to need no warm-up: the batches are large and alike, so all steps go one way.
constexpr double kRate = 1e-6;
// Enough micro-batches to record the graphs of the first and of all others.
constexpr int64_t kWarmUpMicroBatches = 4;

class Bench {
 public:
  Bench(const Options& options, Report& report, const std::string& recipe)
      : options_(options),
        report_(report),
        name_("train." + options.model + "." + recipe + Suffix(options)) {
    config::ModelConfig m = LlamaConfig(options.model, options.seq, options.layers);
    UseRecipe(recipe, m);
    device::Shape shape{.model = m, .batch = options.micro_batch};
    shape.fast = Fast(options.fast);
    shape.head_tokens = options.head_tokens;
    shape.recomputed_layers = options.recomputed;
    shape.recompute_swiglu = options.recompute_swiglu;
    device::CudaOptions cuda;
    cuda.graphs = !options.eager;
    cuda.deterministic = options.deterministic;
    cuda.gemm_cache = options.cache;
    cuda.gemm_candidates = static_cast<int>(options.candidates);
    model_ = std::make_unique<device::Model>(
        device::MakeCudaOps(cuda), shape,
        device::StateTypes{!options.fp32_moments, options.bf16_gradients}, nullptr);
    optimizer_ =
        std::make_unique<device::Optimizer>(model_.get(), optim::AdamWConfig{0.9, 0.95, 1e-8, 0.1});
    text_ = std::make_unique<RandomText>(m.padded_vocab_size);
  }

  void Run() {
    size_t free = 0, total = 0;
    MUSTER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    const double gib = 1.0 / (1 << 30);
    report_.Add({name_ + ".memory", static_cast<double>(model_->memory_bytes()) * gib, "GiB", false,
                 "planned; in use " + Text2(static_cast<double>(total - free) * gib) + " of " +
                     Text2(static_cast<double>(total) * gib) + " GiB"});
    const double first = Step(kWarmUpMicroBatches);
    if (options_.profile) Profile();
    GpuWatch watch;
    const device::EnergyMeter meter(0);
    const std::optional<double> before = meter.Joules();
    const auto start = std::chrono::steady_clock::now();
    double seconds = 0, loss = 0;
    int steps = 0;
    while (seconds < options_.seconds) {
      loss = Step(MicroBatches());
      ++steps;
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    const std::optional<double> after = meter.Joules();
    const GpuWatch::Means means = watch.Stop();
    const double tokens = static_cast<double>(steps * options_.sequences * options_.seq);
    const double flops = loop::FlopsPerIteration(model_->shape().model, steps * options_.sequences);
    const config::ModelConfig& m = model_->shape().model;
    // Attention counted over the whole square instead of its causal half.
    const double square =
        6.0 *
        static_cast<double>(m.num_layers * m.num_attention_heads * m.kv_channels * m.seq_length) *
        tokens;
    report_.Add({name_ + ".tokens_per_s", tokens / seconds, "tokens/s", true,
                 std::to_string(steps) + " steps of " + std::to_string(options_.sequences) +
                     " sequences of " + std::to_string(options_.seq) + " in " + Text2(seconds) +
                     " s; SM " + Text2(means.megahertz) + " MHz, " + Text2(means.watts) +
                     " W; loss " + Text2(first) + " to " + Text2(loss)});
    report_.Add({name_ + ".us_per_token", seconds / tokens * 1e6, "us", false, ""});
    report_.Add({name_ + ".tflops_causal", flops / seconds * 1e-12, "TFLOP/s", true, ""});
    report_.Add({name_ + ".tflops_square", (flops + square) / seconds * 1e-12, "TFLOP/s", true,
                 "attention counted without the causal half"});
    if (before && after) {
      report_.Add({name_ + ".energy", (*after - *before) / tokens * 1e3, "mJ/token", false,
                   "the GPU's energy counter"});
    }
  }

 private:
  static std::string Text2(double value) {
    char text[32];
    std::snprintf(text, sizeof(text), "%.2f", value);
    return text;
  }

  int64_t MicroBatches() const { return options_.sequences / options_.micro_batch; }

  // One optimizer step; the mean loss of its tokens.
  double Step(int64_t micro_batches) {
    model_->BeginIteration();
    for (int64_t k = 0; k < micro_batches; ++k) {
      // New text each time: what repeats is learnt by heart, and gradients of nothing are light
      // work.
      model_->ForwardBackward(text_->Next(options_.micro_batch, options_.seq));
    }
    const device::Model::Sums sums = model_->TakeSums();
    const double norm = optimizer_->Normalize(sums.tokens);
    if (!std::isfinite(norm)) throw CudaError("the gradient norm is not finite");
    optimizer_->Step({kRate, kRate}, optim::ClipCoefficient(norm, 1.0));
    return sums.loss / sums.tokens;
  }

  void Profile() {
    const double tokens = static_cast<double>(options_.sequences * options_.seq);
    model_->ops().StartProfile();
    Step(MicroBatches());
    double total = 0;
    const std::vector<device::OpTime> times = model_->ops().TakeProfile();
    for (const device::OpTime& time : times) total += time.milliseconds;
    for (const device::OpTime& time : times) {
      std::fprintf(stderr, "%-64s %6ld x %9.1f us = %8.4f us/token %6.2f %%\n", time.name.c_str(),
                   static_cast<long>(time.count),
                   time.milliseconds * 1e3 / static_cast<double>(time.count),
                   time.milliseconds * 1e3 / tokens, 100 * time.milliseconds / total);
    }
    std::fprintf(stderr, "all %.3f us/token\n", total * 1e3 / tokens);
  }

  const Options options_;
  Report& report_;
  const std::string name_;
  std::unique_ptr<device::Model> model_;
  std::unique_ptr<device::Optimizer> optimizer_;
  std::unique_ptr<Text> text_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("training of a Llama on one GPU");
  app.add_option("--model", options.model, "8b, 3b or 1b")
      ->check(CLI::IsMember({"8b", "3b", "1b"}))
      ->capture_default_str();
  app.add_option("--recipe", options.recipes, "delayed, tensorwise, bf16; several, one by one")
      ->check(CLI::IsMember({"delayed", "tensorwise", "bf16"}))
      ->capture_default_str();
  app.add_option("--layers", options.layers, "instead of the model's");
  app.add_option("--seq", options.seq)->capture_default_str();
  app.add_option("--micro-batch-size", options.micro_batch)->capture_default_str();
  app.add_option("--sequences", options.sequences, "of an optimizer step")->capture_default_str();
  app.add_option("--head-tokens", options.head_tokens, "whose logits exist at a time")
      ->capture_default_str();
  app.add_option("--recompute-layers", options.recomputed, "keep their input alone");
  app.add_flag("--recompute-swiglu", options.recompute_swiglu, "make its output again");
  app.add_option("--fast-accumulation", options.fast, "none, forward, input (forward too) or all")
      ->check(CLI::IsMember({"none", "forward", "input", "all"}))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each recipe")->capture_default_str();
  app.add_option("--candidates", options.candidates,
                 "algorithms timed for each product; 1: cuBLAS's first choice")
      ->capture_default_str();
  app.add_option("--cache", options.cache, "file that keeps tuned algorithms");
  app.add_flag("--eager", options.eager, "without CUDA graphs");
  app.add_flag("--deterministic", options.deterministic, "attention's backward too");
  app.add_flag("--fp32-moments", options.fp32_moments);
  app.add_flag("--bf16-gradients", options.bf16_gradients, "of the FP8 linears");
  app.add_flag("--profile", options.profile, "print the time of each kernel, from one step");
  app.add_flag("--json", options.json);
  app.add_option("--reference", options.references,
                 "NAME=VALUE=LABEL: print row NAME's ratio to VALUE, which is called LABEL");
  return RunGpuBench(app, argc, argv, [&] {
    std::map<std::string, Report::Reference> references;
    for (const std::string& text : options.references) references.insert(ParseReference(text));
    std::fprintf(stderr, "%s W; cublasLt %zu, cuDNN %zu\n", DescribeGpu().c_str(),
                 cublasLtGetVersion(), cudnnGetVersion());
    Report report(options.json, std::move(references));
    for (const std::string& recipe : options.recipes) Bench(options, report, recipe).Run();
    report.Finish();
  });
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::Main(argc, argv);
}
