#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/gpu_main.h"
#include "tests/bench/gpu_watch.h"
#include "tests/bench/model_ops.h"
#include "tests/bench/report.h"
#include "trainer/fp8/cuda/tuner.h"
#include "trainer/tensor/cuda_stopwatch.h"

// How fast the GPU does what no implementation of Llama-3-8B can leave out: its FP8 products, its
// attention and its LM head, alone (bursts) and in training order under the power limit
// (sustained). Random operands.

namespace muster::bench {
namespace {

using fp8::cuda::ElementType;
using fp8::cuda::FastAccumulation;
using fp8::cuda::GemmSpec;
using fp8::cuda::LinearGemms;
using kernels::cuda::AttentionPlan;
using kernels::cuda::AttentionSpec;

struct Options {
  bool json = false;
  double seconds = 10;  // of each sustained row
  std::string only;     // a prefix of row names
  std::string cache;
  int candidates = 32;
  std::vector<std::string> references;
};

constexpr FastAccumulation kRecipe{};  // fast forward only
constexpr FastAccumulation kAllFast{true, true, true};
constexpr FastAccumulation kAllSplit{false, false, false};
constexpr float kSeriesMs = 10;
constexpr int64_t kScratchBytes = int64_t{12} << 30;

LinearGemms Fp8(const fp8::cuda::LinearShape& shape, FastAccumulation fast,
                ElementType main_gradient = ElementType::kFp32) {
  return Fp8LinearGemms(shape, fp8::Format::kE5m2, fast, main_gradient);
}

AttentionSpec SpecOf(int64_t batch, bool deterministic = false) {
  return {batch, kTokens, kHeads, kGroups, kHeadDim, deterministic};
}

class Bench {
 public:
  Bench(const Options& options, Report& report)
      : options_(options),
        report_(report),
        scratch_(kScratchBytes),
        workspace_(int64_t{6} << 30),
        gemms_({.cache_file = options.cache, .candidates = 32, .note = [](const std::string& note) {
                  std::fprintf(stderr, "%s\n", note.c_str());
                }}) {
    MUSTER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    for (const NamedShape& linear : kLinears) {
      linears_.push_back(
          std::make_unique<LinearOps>(linear.name, Fp8(linear.shape, kRecipe), true, stream_));
    }
    head_ = std::make_unique<LinearOps>("head", Bf16LinearGemms(kHead, ElementType::kFp32), false,
                                        stream_);
  }
  ~Bench() { cudaStreamDestroy(stream_); }

  void Run() {
    if (Wanted("gemm")) BurstGemms();
    if (Wanted("head")) BurstHead();
    if (Wanted("attention")) BurstAttention();
    if (Wanted("sustained")) Sustained();
  }

 private:
  bool Wanted(const std::string& group) const {
    return options_.only.empty() || options_.only.starts_with(group);
  }
  void* Workspace() const { return workspace_.get(); }

  void Prepare(const LinearGemms& linear) {
    const GemmSpec specs[] = {linear.forward, linear.input_gradient, linear.weight_gradient};
    gemms_.Prepare(specs, scratch_.span(), stream_);
  }

  // Milliseconds of one run: the median of five series of runs in a row, after one series more.
  float Burst(const std::function<void()>& run) {
    std::vector<float> times;
    CudaStopwatch stopwatch;
    int runs = 1;
    for (int series = 0; series < 6; ++series) {
      stopwatch.Start(stream_);
      for (int i = 0; i < runs; ++i) run();
      const float milliseconds = stopwatch.Stop(stream_) / static_cast<float>(runs);
      if (series > 0) times.push_back(milliseconds);
      runs = std::clamp(static_cast<int>(kSeriesMs / milliseconds), 2, 50);
    }
    std::nth_element(times.begin(), times.begin() + 2, times.end());
    return times[2];
  }

  void AddRate(const std::string& name, double flops, double milliseconds,
               const std::string& remark = "") {
    char text[64];
    std::snprintf(text, sizeof(text), "%.4f ms%s%s", milliseconds, remark.empty() ? "" : ", ",
                  remark.c_str());
    report_.Add({name, flops / milliseconds * 1e-9, "TFLOP/s", true, text});
  }

  void BurstLinear(const LinearOps& linear, const std::string& prefix, const std::string& suffix) {
    const LinearGemms& specs = linear.gemms();
    Prepare(specs);
    AddRate(prefix + ".forward" + suffix, Flops(specs.forward),
            Burst([&] { linear.Forward(gemms_, Workspace(), stream_); }));
    AddRate(prefix + ".input_gradient" + suffix, Flops(specs.input_gradient),
            Burst([&] { linear.InputGradient(gemms_, Workspace(), stream_); }));
    AddRate(prefix + ".weight_gradient" + suffix, Flops(specs.weight_gradient),
            Burst([&] { linear.WeightGradient(gemms_, Workspace(), stream_); }));
  }

  void BurstGemms() {
    for (size_t i = 0; i < kLinears.size(); ++i) {
      LinearOps& linear = *linears_[i];
      linear.Use(Fp8(kLinears[i].shape, kAllFast));
      BurstLinear(linear, "gemm." + linear.name(), ".fast");
      linear.Use(Fp8(kLinears[i].shape, kAllSplit));
      BurstLinear(linear, "gemm." + linear.name(), ".split");
      linear.Use(Fp8(kLinears[i].shape, kAllSplit, ElementType::kBf16));
      Prepare(linear.gemms());
      AddRate("gemm." + linear.name() + ".weight_gradient.split.bf16",
              Flops(linear.gemms().weight_gradient),
              Burst([&] { linear.WeightGradient(gemms_, Workspace(), stream_); }));
    }
  }

  void BurstHead() {
    BurstLinear(*head_, "head", "");
    const LinearOps chunk(
        "chunk", Bf16LinearGemms({1024, kVocabulary, kHidden}, ElementType::kFp32), false, stream_);
    BurstLinear(chunk, "head.1024_tokens", "");
  }

  const AttentionPlan& PlanOf(const AttentionSpec& spec) {
    const AttentionPlan& plan = attention_.Plan(spec, scratch_.span(), stream_);
    if (plan.WorkspaceBytes() > workspace_.bytes()) {
      throw CudaError(ToString(spec) + " needs " + std::to_string(plan.WorkspaceBytes()) +
                      " bytes of workspace");
    }
    return plan;
  }

  void BurstAttention() {
    for (const AttentionSpec& spec : {SpecOf(1), SpecOf(1, true), SpecOf(2)}) {
      const AttentionPlan& plan = PlanOf(spec);
      const AttentionOps ops(spec, stream_);
      const std::string name = "attention.batch" + std::to_string(spec.batch);
      char remark[32];
      std::snprintf(remark, sizeof(remark), "%.0f MiB",
                    static_cast<double>(plan.WorkspaceBytes()) / (1 << 20));
      const float forward = Burst([&] { ops.Forward(plan, Workspace(), stream_); });
      if (!spec.deterministic) AddRate(name + ".forward", AttentionFlops(spec), forward);
      AddRate(name + ".backward" + (spec.deterministic ? ".deterministic" : ""),
              2.5 * AttentionFlops(spec), Burst([&] { ops.Backward(plan, Workspace(), stream_); }),
              remark);
      std::fprintf(stderr, "%s: %s\n", ToString(spec).c_str(), plan.Describe().c_str());
    }
  }

  // Repeats `pass` (one micro-batch of kTokens) for the wanted time: time and energy of a token.
  void Hold(const std::string& name, const std::function<void()>& pass) {
    using Clock = std::chrono::steady_clock;
    for (int i = 0; i < 2; ++i) pass();
    MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream_));
    GpuWatch watch;
    const Clock::time_point start = Clock::now();
    double seconds = 0;
    int passes = 0;
    while (seconds < options_.seconds) {
      pass();
      MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream_));
      ++passes;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    }
    const GpuWatch::Means means = watch.Stop();
    const double per_token = seconds / passes / static_cast<double>(kTokens);
    char remark[96];
    std::snprintf(remark, sizeof(remark), "%.1f ms, %.0f tokens/s, %.0f MHz, %.0f W",
                  seconds / passes * 1e3, 1 / per_token, means.megahertz, means.watts);
    report_.Add({"sustained." + name, per_token * 1e6, "us/token", false, remark});
    report_.Add(
        {"sustained." + name + ".energy", per_token * means.watts * 1e3, "mJ/token", false, ""});
  }

  struct Parts {
    bool gemm = true, attention = true, head = true;
  };

  // One micro-batch in training order.
  void Pass(Parts parts, const AttentionPlan& plan, const AttentionOps& attention) {
    for (int layer = 0; layer < kLayers; ++layer) {
      if (parts.gemm) {
        for (const auto& linear : linears_) linear->Forward(gemms_, Workspace(), stream_);
      }
      if (parts.attention) attention.Forward(plan, Workspace(), stream_);
    }
    if (parts.head) {
      head_->Forward(gemms_, Workspace(), stream_);
      head_->InputGradient(gemms_, Workspace(), stream_);
      head_->WeightGradient(gemms_, Workspace(), stream_);
    }
    for (int layer = 0; layer < kLayers; ++layer) {
      if (parts.gemm) {
        for (auto linear = linears_.rbegin(); linear != linears_.rend(); ++linear) {
          (*linear)->InputGradient(gemms_, Workspace(), stream_);
          (*linear)->WeightGradient(gemms_, Workspace(), stream_);
        }
      }
      if (parts.attention) attention.Backward(plan, Workspace(), stream_);
    }
  }

  void UseForAll(FastAccumulation fast, ElementType main_gradient) {
    for (size_t i = 0; i < kLinears.size(); ++i) {
      linears_[i]->Use(Fp8(kLinears[i].shape, fast, main_gradient));
      Prepare(linears_[i]->gemms());
    }
  }

  void Sustained() {
    const AttentionSpec spec = SpecOf(1);
    const AttentionPlan& plan = PlanOf(spec);
    const AttentionOps attention(spec, stream_);
    Prepare(head_->gemms());
    UseForAll(kRecipe, ElementType::kFp32);
    Hold("all", [&] { Pass({}, plan, attention); });
    Hold("gemm", [&] { Pass({.attention = false, .head = false}, plan, attention); });
    Hold("attention", [&] { Pass({.gemm = false, .head = false}, plan, attention); });
    Hold("head", [&] { Pass({.gemm = false, .attention = false}, plan, attention); });
    UseForAll(kAllFast, ElementType::kFp32);
    Hold("all.all_fast", [&] { Pass({}, plan, attention); });
    UseForAll(kRecipe, ElementType::kBf16);
    Hold("all.bf16_main_gradient", [&] { Pass({}, plan, attention); });
  }

  const Options& options_;
  Report& report_;
  cudaStream_t stream_ = nullptr;
  DeviceBuffer scratch_, workspace_;
  fp8::cuda::Gemms gemms_;
  kernels::cuda::Attention attention_;
  std::vector<std::unique_ptr<LinearOps>> linears_;
  std::unique_ptr<LinearOps> head_;
};

int Main(int argc, char** argv) {
  Options options;
  CLI::App app{"Llama-3-8B's matrix products and attention on one GPU: a row for each figure"};
  app.add_flag("--json", options.json, "print a JSON list instead of a table");
  app.add_option("--seconds", options.seconds, "length of each sustained row")
      ->capture_default_str();
  app.add_option("--only", options.only, "gemm, head, attention or sustained")
      ->check(CLI::IsMember({"gemm", "head", "attention", "sustained"}));
  app.add_option("--cache", options.cache, "file that keeps tuned algorithms");
  app.add_option("--candidates", options.candidates,
                 "algorithms timed for each product; 1: cuBLAS's first choice")
      ->capture_default_str();
  app.add_option("--reference", options.references,
                 "NAME=VALUE=LABEL: print row NAME's ratio to VALUE, which is called LABEL");
  return RunGpuBench(app, argc, argv, [&] {
    std::map<std::string, Report::Reference> references;
    for (const std::string& text : options.references) references.insert(ParseReference(text));
    std::fprintf(stderr, "%s W; cublasLt %zu; %ld tokens\n", DescribeGpu().c_str(),
                 cublasLtGetVersion(), static_cast<long>(kTokens));
    Report report(options.json, std::move(references));
    Bench(options, report).Run();
    report.Finish();
  });
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::Main(argc, argv);
}
