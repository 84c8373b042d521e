#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "trainer/fp8/cuda/gemm_plan.h"
#include "trainer/fp8/cuda/tuning_cache.h"

namespace muster::fp8::cuda {

// The matrix products of a model on the current GPU: one plan for each different spec, made and
// tuned before training, then looked up. One thread. Throws CudaError.
class Gemms {
 public:
  struct Options {
    std::string cache_file;  // empty: tunings are not kept
    int candidates = 32;     // algorithms that are timed; 1 takes cuBLAS's first choice untimed
    TuningCache::Note note;  // gets one line about each tuning and each trouble with the cache
  };

  explicit Gemms(Options options);
  ~Gemms();
  Gemms(const Gemms&) = delete;
  Gemms& operator=(const Gemms&) = delete;

  // Makes the plans that are missing. Algorithms come from the cache file, else from timing in
  // `scratch` (device memory, the largest TuningBytes of the specs). Waits for the stream.
  void Prepare(std::span<const GemmSpec> specs, std::span<std::byte> scratch, cudaStream_t stream);

  // A prepared plan; it lives as long as this object.
  const GemmPlan& Plan(const GemmSpec& spec) const;

 private:
  void Choose(GemmPlan& plan, std::span<std::byte> scratch, cudaStream_t stream);

  Options options_;
  cublasLtHandle_t handle_ = nullptr;
  TuningCache cache_;
  std::map<GemmSpec, GemmPlan> plans_;
};

}  // namespace muster::fp8::cuda
