#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "trainer/fp8/cuda/gemm_arguments.h"
#include "trainer/fp8/cuda/gemm_spec.h"
#include "trainer/fp8/cuda/tuning_cache.h"

namespace muster::fp8::cuda {

// One GemmSpec, ready to run on cuBLASLt: its descriptors are made once, here. One thread at a
// time. Throws CudaError with the spec.
class GemmPlan {
 public:
  // `handle` must outlive the plan.
  GemmPlan(cublasLtHandle_t handle, const GemmSpec& spec);

  const GemmSpec& spec() const { return spec_; }

  // Up to `limit` algorithms that cuBLAS expects to be good, best first; at least one.
  std::vector<GemmAlgorithm> Candidates(int limit) const;
  // Whether this library can run `algorithm` for the spec (one from a file may be stale).
  bool Accepts(const GemmAlgorithm& algorithm) const;
  void Use(const GemmAlgorithm& algorithm) { algorithm_ = algorithm; }
  const GemmAlgorithm& algorithm() const { return algorithm_; }

  // Enqueues the product: no allocation, no synchronisation, can be captured into a CUDA graph.
  // `workspace` has kGemmWorkspaceBytes and belongs to the stream while the work runs.
  void Run(const GemmArguments& arguments, void* workspace, cudaStream_t stream) const;
  // As Run with another algorithm; false when it can't run.
  bool Try(const GemmAlgorithm& algorithm, const GemmArguments& arguments, void* workspace,
           cudaStream_t stream) const;

 private:
  template <auto kDestroy>
  struct Deleter {
    template <typename T>
    void operator()(T* object) const {
      kDestroy(object);
    }
  };
  using Operation = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>,
                                    Deleter<cublasLtMatmulDescDestroy>>;
  using Matrix = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                 Deleter<cublasLtMatrixLayoutDestroy>>;

  Matrix MakeMatrix(ElementType type, int64_t rows, int64_t columns) const;
  void Set(cublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes) const;
  void SetScales(const float* left, const float* right) const;
  cublasStatus_t Launch(const GemmAlgorithm& algorithm, const GemmArguments& arguments,
                        void* workspace, cudaStream_t stream) const;

  cublasLtHandle_t handle_;
  GemmSpec spec_;
  Operation operation_;
  Matrix left_, right_, out_;
  GemmAlgorithm algorithm_;
};

}  // namespace muster::fp8::cuda
