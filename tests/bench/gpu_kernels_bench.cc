#include <cuda_runtime_api.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/gpu_main.h"
#include "tests/bench/gpu_watch.h"
#include "tests/bench/report.h"
#include "tests/kernels/device_buffer.h"
#include "trainer/kernels/cuda/adamw_fp8.h"
#include "trainer/kernels/cuda/cross_entropy.h"
#include "trainer/kernels/cuda/fill_normal.h"
#include "trainer/kernels/cuda/fp8_cast.h"
#include "trainer/kernels/cuda/rmsnorm_backward.h"
#include "trainer/kernels/cuda/rmsnorm_fp8.h"
#include "trainer/kernels/cuda/rope_packed.h"
#include "trainer/kernels/cuda/swiglu_fp8.h"
#include "trainer/tensor/cuda_stopwatch.h"

// The fused memory-bound kernels at Llama-3-8B's sizes: time, bytes that must move, and that rate
// against a device-to-device copy in the same run. Each kernel alternates between sets of operands
// of its own, so that nothing is found in the cache.

namespace muster::bench {
namespace {

using fp8::Format;

constexpr int64_t kTokens = 8192, kHidden = 4096, kFfn = 14336;
constexpr kernels::QkvShape kQkv{1, kTokens, 8, 4, 128};
constexpr int kSets = 2;
constexpr float kSeriesMs = 20;

// A kernel to time: `run(set)` enqueues it.
struct Kernel {
  std::string name;
  int64_t bytes;  // read + written, each operand once
  std::function<void(int)> run;
};

class Bench {
 public:
  Bench() { MUSTER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Bench() { cudaStreamDestroy(stream_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Milliseconds of one run: the median of seven series, after one series more.
  double Time(const Kernel& kernel) {
    CudaStopwatch stopwatch;
    std::vector<float> times;
    int runs = kSets;
    for (int series = 0; series < 8; ++series) {
      stopwatch.Start(stream_);
      for (int i = 0; i < runs; ++i) kernel.run(i % kSets);
      const float milliseconds = stopwatch.Stop(stream_) / static_cast<float>(runs);
      MUSTER_CUDA_CHECK(cudaGetLastError());
      if (series > 0) times.push_back(milliseconds);
      runs = std::clamp(static_cast<int>(kSeriesMs / milliseconds), 2, 200) / kSets * kSets;
    }
    std::nth_element(times.begin(), times.begin() + 3, times.end());
    return times[3];
  }

  Kernel Copy() {
    const int64_t bytes = int64_t{512} << 20;
    auto from = Normals<Bfloat16>(bytes / 2), to = Normals<Bfloat16>(bytes / 2);
    return {"copy", 2 * bytes, [=, this](int set) {
              MUSTER_CUDA_CHECK(cudaMemcpyAsync(to(set), from(set), static_cast<size_t>(bytes),
                                                cudaMemcpyDeviceToDevice, stream_));
            }};
  }
  Kernel Cast() {
    const int64_t count = kTokens * kFfn;
    auto x = Normals<Bfloat16>(count);
    auto y = Output(count, Format::kE4m3);
    return {"cast_transpose", 4 * count, [=, this](int set) {
              const kernels::Fp8Output out = y(set);
              kernels::cuda::CastToFp8<Bfloat16>(x(set), kTokens, kFfn, out.scale, out.format,
                                                 out.codes, out.transposed, out.scale_inv, out.amax,
                                                 stream_);
            }};
  }
  // The gradient of a layer's output as the products take it.
  Kernel CastHidden() {
    const int64_t count = kTokens * kHidden;
    auto x = Normals<Bfloat16>(count);
    auto y = Output(count, Format::kE5m2);
    return {"cast_hidden", 4 * count, [=, this](int set) {
              const kernels::Fp8Output out = y(set);
              kernels::cuda::CastToFp8<Bfloat16>(x(set), kTokens, kHidden, out.scale, out.format,
                                                 out.codes, out.transposed, out.scale_inv, out.amax,
                                                 stream_);
            }};
  }
  Kernel Rope() {
    auto qkv = Normals<Bfloat16>(kTokens * kernels::PackedColumns(kQkv));
    auto cos = Normals<float>(kTokens * 64), sin = Normals<float>(kTokens * 64);
    const int64_t turned = kTokens * 40 * 128;
    return {"rope_packed", 4 * turned + 8 * kTokens * 64, [=, this](int set) {
              kernels::cuda::RopePacked(kQkv, cos(set), sin(set), qkv(set), stream_);
            }};
  }
  Kernel RopeBackward() {
    const int64_t count = kTokens * kernels::PackedColumns(kQkv);
    auto dqkv = Normals<Bfloat16>(count);
    auto cos = Normals<float>(kTokens * 64), sin = Normals<float>(kTokens * 64);
    auto y = Output(count, Format::kE5m2);
    return {"rope_packed_gradient_fp8", 4 * count + 8 * kTokens * 64, [=, this](int set) {
              kernels::cuda::RopePackedGradientFp8(kQkv, cos(set), sin(set), dqkv(set), y(set),
                                                   stream_);
            }};
  }
  Kernel CrossEntropy() {
    const int64_t vocab = 128256, rows = 4096;
    auto logits = Normals<Bfloat16>(rows * vocab);
    auto labels = Allocate<int64_t>(rows);
    auto mask = Normals<float>(rows), losses = Normals<float>(rows);
    return {"cross_entropy", 4 * rows * vocab, [=, this](int set) {
              kernels::cuda::CrossEntropy(rows, vocab, logits(set), labels(set), mask(set), true,
                                          losses(set), stream_);
            }};
  }
  Kernel RmsNorm() {
    const int64_t count = kTokens * kHidden;
    auto x = Normals<Bfloat16>(count), weight = Normals<Bfloat16>(kHidden);
    auto rstd = Normals<float>(kTokens);
    auto y = Output(count, Format::kE4m3);
    return {"rmsnorm_fp8", 4 * count + 4 * kTokens, [=, this](int set) {
              kernels::cuda::RmsNormFp8({kTokens, kHidden, 1e-5, 0}, x(set), weight(set), rstd(set),
                                        y(set), stream_);
            }};
  }
  Kernel RmsNormBackwardFp8() {
    const int64_t count = kTokens * kHidden;
    auto dy = Normals<Bfloat16>(count), x = Normals<Bfloat16>(count);
    auto weight = Normals<Bfloat16>(kHidden), dx = Normals<Bfloat16>(count);
    auto rstd = Normals<float>(kTokens), dweight = Normals<float>(kHidden);
    auto workspace = Allocate<float>(kernels::cuda::RmsNormBackwardFp8Workspace(kTokens, kHidden));
    auto y = Output(count, Format::kE5m2);
    return {"rmsnorm_backward_fp8", 10 * count + 4 * kTokens, [=, this](int set) {
              kernels::cuda::RmsNormBackwardFp8({kTokens, kHidden, 1e-5, 0}, dy(set), x(set),
                                                weight(set), rstd(set), dx(set), dweight(set),
                                                y(set), workspace(set), stream_);
            }};
  }
  Kernel RmsNormBackward() {
    const int64_t count = kTokens * kHidden;
    auto dy = Normals<Bfloat16>(count), x = Normals<Bfloat16>(count);
    auto weight = Normals<Bfloat16>(kHidden), dx = Normals<Bfloat16>(count);
    auto rstd = Normals<float>(kTokens), dweight = Normals<float>(kHidden);
    auto workspace = Allocate<float>(kernels::cuda::RmsNormBackwardWorkspace(kHidden));
    return {"rmsnorm_backward", 8 * count + 4 * kTokens, [=, this](int set) {
              kernels::cuda::RmsNormBackward({kTokens, kHidden, 1e-5, 0}, dy(set), x(set),
                                             weight(set), rstd(set), dx(set), dweight(set),
                                             workspace(set), stream_);
            }};
  }
  Kernel SwigluForward() {
    const int64_t count = kTokens * kFfn;
    auto gate_up = Normals<Bfloat16>(2 * count);
    auto y = Output(count, Format::kE4m3);
    return {"swiglu_fp8", 6 * count, [=, this](int set) {
              kernels::cuda::SwigluForwardFp8(kTokens, kFfn, gate_up(set), y(set), stream_);
            }};
  }
  Kernel SwigluBackward() {
    const int64_t count = kTokens * kFfn;
    auto gate_up = Normals<Bfloat16>(2 * count), dy = Normals<Bfloat16>(count);
    auto dgate_up = Output(2 * count, Format::kE5m2);
    return {"swiglu_backward_fp8", 10 * count, [=, this](int set) {
              kernels::cuda::SwigluBackwardFp8(kTokens, kFfn, dy(set), gate_up(set), dgate_up(set),
                                               {}, stream_);
            }};
  }
  Kernel SwigluBackwardAgain() {
    const int64_t count = kTokens * kFfn;
    auto gate_up = Normals<Bfloat16>(2 * count), dy = Normals<Bfloat16>(count);
    auto dgate_up = Output(2 * count, Format::kE5m2), y = Output(count, Format::kE4m3);
    return {"swiglu_backward_fp8.again", 11 * count, [=, this](int set) {
              kernels::Fp8Output again = y(set);  // transposed alone
              again.codes = nullptr;
              again.scale_inv = again.amax = nullptr;
              kernels::cuda::SwigluBackwardFp8(kTokens, kFfn, dy(set), gate_up(set), dgate_up(set),
                                               again, stream_);
            }};
  }
  // Of fc1's weight, with fp32 gradients.
  template <typename M>
  Kernel AdamW(const std::string& name) {
    const int64_t rows = 2 * kFfn, count = rows * kHidden;
    auto grad = Normals<float>(count), master = Normals<float>(count);
    auto exp_avg = Normals<M>(count), exp_avg_sq = Allocate<M>(count);
    auto weight = Output(count, Format::kE4m3);
    const auto moment = static_cast<int64_t>(sizeof(M));
    const kernels::AdamWRule rule{1e-4f, 0.1f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.05f, nullptr, nullptr};
    return {name, (4 + 2 * (4 + 2 * moment) + 2) * count, [=, this](int set) {
              kernels::cuda::AdamWFp8(rule, rows, kHidden, grad(set), master(set), exp_avg(set),
                                      exp_avg_sq(set), weight(set), stream_);
            }};
  }
  Kernel AdamWBf16Moments() { return AdamW<Bfloat16>("adamw_fp8.bf16_moments"); }
  Kernel AdamWFp32Moments() { return AdamW<float>("adamw_fp8.fp32_moments"); }
  Kernel Squares() {
    const int64_t count = 2 * kFfn * kHidden;
    auto grad = Normals<float>(count);
    auto sum = Allocate<double>(1), parts = Allocate<double>(kernels::cuda::AddSquaresWorkspace());
    return {"gradient_squares", 4 * count, [=, this](int set) {
              kernels::cuda::AddSquares(count, grad(set), sum(set), parts(set), stream_);
            }};
  }

 private:
  // The `set`th of kSets arrays on the device. They live as long as the function.
  template <typename T>
  using Sets = std::function<T*(int)>;

  template <typename T>
  Sets<T> Allocate(int64_t count) {
    auto buffers = std::make_shared<std::vector<std::unique_ptr<DeviceBuffer>>>();
    for (int set = 0; set < kSets; ++set) {
      buffers->push_back(std::make_unique<DeviceBuffer>(count * static_cast<int64_t>(sizeof(T))));
      buffers->back()->FillBytes(0);
    }
    return [buffers](int set) { return (*buffers)[static_cast<size_t>(set)]->get<T>(); };
  }
  template <typename T>
  Sets<T> Normals(int64_t count) {
    Sets<T> data = Allocate<T>(count);
    for (int set = 0; set < kSets; ++set) {
      kernels::cuda::FillNormal(data(set), count, 1.0f, ++seed_, stream_);
    }
    return data;
  }
  std::function<kernels::Fp8Output(int)> Output(int64_t count, Format format) {
    auto codes = Allocate<uint8_t>(count), transposed = Allocate<uint8_t>(count);
    auto scales = Normals<float>(3);
    return [=](int set) {
      return kernels::Fp8Output{format,          scales(set),     codes(set),
                                transposed(set), scales(set) + 1, scales(set) + 2};
    };
  }

  cudaStream_t stream_ = nullptr;
  uint64_t seed_ = 0;
};

void Run(bool json, const std::string& only) {
  std::fprintf(stderr, "%s W; %ld tokens\n", DescribeGpu().c_str(), static_cast<long>(kTokens));
  Bench bench;
  const Kernel copy = bench.Copy();
  const double copy_rate = static_cast<double>(copy.bytes) / bench.Time(copy) * 1e-6;
  using Make = Kernel (Bench::*)();
  const std::pair<std::string, Make> kernels[] = {
      {"cast_transpose", &Bench::Cast},
      {"cast_hidden", &Bench::CastHidden},
      {"rope_packed", &Bench::Rope},
      {"rope_packed_gradient_fp8", &Bench::RopeBackward},
      {"cross_entropy", &Bench::CrossEntropy},
      {"rmsnorm_fp8", &Bench::RmsNorm},
      {"rmsnorm_backward_fp8", &Bench::RmsNormBackwardFp8},
      {"rmsnorm_backward", &Bench::RmsNormBackward},
      {"swiglu_fp8", &Bench::SwigluForward},
      {"swiglu_backward_fp8", &Bench::SwigluBackward},
      {"swiglu_backward_fp8.again", &Bench::SwigluBackwardAgain},
      {"adamw_fp8.bf16_moments", &Bench::AdamWBf16Moments},
      {"adamw_fp8.fp32_moments", &Bench::AdamWFp32Moments},
      {"gradient_squares", &Bench::Squares},
  };
  std::map<std::string, Report::Reference> references;
  for (const auto& [name, make] : kernels) references[name] = {copy_rate, "copy"};
  Report report(json, references);
  report.Add({"copy", copy_rate, "GB/s", true, "512 MiB, read and written"});
  for (const auto& [name, make] : kernels) {
    if (!name.starts_with(only)) continue;
    const Kernel kernel = (bench.*make)();  // its memory is given back before the next one's
    const double milliseconds = bench.Time(kernel);
    char remark[64];
    std::snprintf(remark, sizeof(remark), "%.1f us, %.1f MiB", milliseconds * 1e3,
                  static_cast<double>(kernel.bytes) / 0x1p20);
    report.Add(
        {name, static_cast<double>(kernel.bytes) / milliseconds * 1e-6, "GB/s", true, remark});
  }
  report.Finish();
}

int Main(int argc, char** argv) {
  bool json = false;
  std::string only;
  CLI::App app{"The fused memory-bound kernels at Llama-3-8B's sizes: a row for each"};
  app.add_flag("--json", json, "print a JSON list instead of a table");
  app.add_option("--only", only, "the beginning of the names of the rows wanted");
  return RunGpuBench(app, argc, argv, [&] { Run(json, only); });
}

}  // namespace
}  // namespace muster::bench

int main(int argc, char** argv) {
  return muster::bench::Main(argc, argv);
}
