#include "trainer/fp8/cuda/gemms.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <optional>
#include <utility>

#include "trainer/fp8/cuda/cublas_check.h"
#include "trainer/fp8/cuda/tuner.h"

namespace muster::fp8::cuda {
namespace {

std::string DeviceName() {
  int device = 0;
  cudaDeviceProp properties;
  MUSTER_CUDA_CHECK(cudaGetDevice(&device));
  MUSTER_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return properties.name;
}

std::string LibraryName() {
  return "cublasLt " + std::to_string(cublasLtGetVersion());
}

Gemms::Options WithNote(Gemms::Options options) {
  if (!options.note) options.note = [](const std::string&) {};
  return options;
}

std::string Describe(const GemmSpec& spec, const Tuned& tuned) {
  char text[160];
  std::snprintf(text, sizeof(text), ": %.1f us, %.0f TFLOP/s (cuBLAS's first choice %.1f us)",
                tuned.microseconds, Flops(spec) / tuned.microseconds * 1e-6,
                tuned.first_choice_microseconds);
  return "GEMM " + ToString(spec) + text;
}

}  // namespace

Gemms::Gemms(Options options)
    : options_(WithNote(std::move(options))),
      cache_(options_.cache_file, DeviceName(), LibraryName(), options_.note) {
  MUSTER_CUBLAS_CHECK(cublasLtCreate(&handle_), "a new handle");
}

Gemms::~Gemms() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

void Gemms::Choose(GemmPlan& plan, std::span<std::byte> scratch, cudaStream_t stream) {
  if (options_.candidates <= 1) return;
  // What adds to its result and what overwrites it do well with the same algorithm.
  GemmSpec twin = plan.spec();
  twin.accumulate = true;
  if (const auto found = plans_.find(twin);
      !plan.spec().accumulate && found != plans_.end() && plan.Accepts(found->second.algorithm())) {
    return plan.Use(found->second.algorithm());
  }
  const std::string key = ToString(plan.spec());
  if (const std::optional<GemmAlgorithm> known = cache_.Find(key)) {
    if (plan.Accepts(*known)) return plan.Use(*known);
    options_.note("GEMM tuning cache " + options_.cache_file + ": the entry for " + key +
                  " can't run here; tuned again");
  }
  const Tuned tuned = Tune(plan, options_.candidates, scratch, stream);
  plan.Use(tuned.algorithm);
  cache_.Add(key, tuned.algorithm, tuned.microseconds);
  options_.note(Describe(plan.spec(), tuned));
}

void Gemms::Prepare(std::span<const GemmSpec> specs, std::span<std::byte> scratch,
                    cudaStream_t stream) {
  for (const GemmSpec& spec : specs) {
    if (plans_.contains(spec)) continue;
    GemmPlan plan(handle_, spec);
    Choose(plan, scratch, stream);
    plans_.emplace(spec, std::move(plan));
  }
  cache_.Save();
}

const GemmPlan& Gemms::Plan(const GemmSpec& spec) const {
  const auto found = plans_.find(spec);
  if (found == plans_.end()) {
    throw CudaError("the product " + ToString(spec) + " was not prepared");
  }
  return found->second;
}

}  // namespace muster::fp8::cuda
