#include "trainer/fp8/cuda/gemm_plan.h"

#include <bit>
#include <string>

#include "trainer/fp8/cuda/cublas_check.h"

// cuBLAS is column-major: a row-major [R, C] matrix is a column-major C x R one. So it is given
// out^T = right^T * left^T: its A is our right operand, its B our left one.

namespace muster::fp8::cuda {
namespace {

static_assert(sizeof(GemmAlgorithm) == sizeof(cublasLtMatmulAlgo_t));

cudaDataType_t DataType(ElementType type) {
  switch (type) {
    case ElementType::kE4m3:
      return CUDA_R_8F_E4M3;
    case ElementType::kE5m2:
      return CUDA_R_8F_E5M2;
    case ElementType::kBf16:
      return CUDA_R_16BF;
    case ElementType::kFp32:
      break;
  }
  return CUDA_R_32F;
}

bool Aligned(const void* pointer, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(bytes) == 0;
}

}  // namespace

#define CHECK_CUBLAS(expression) MUSTER_CUBLAS_CHECK(expression, ToString(spec_))

GemmPlan::Matrix GemmPlan::MakeMatrix(ElementType type, int64_t rows, int64_t columns) const {
  cublasLtMatrixLayout_t layout = nullptr;
  CHECK_CUBLAS(cublasLtMatrixLayoutCreate(&layout, DataType(type), static_cast<uint64_t>(columns),
                                          static_cast<uint64_t>(rows), columns));
  return Matrix(layout);
}

void GemmPlan::Set(cublasLtMatmulDescAttributes_t attribute, const void* value,
                   size_t bytes) const {
  CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(operation_.get(), attribute, value, bytes));
}

// cuBLAS 13 itself would say only that the product is not supported.
void GemmPlan::SetScales(const float* left, const float* right) const {
  if (left == nullptr || right == nullptr || !Aligned(left, kScaleAlignment) ||
      !Aligned(right, kScaleAlignment)) {
    throw CudaError("scales of " + ToString(spec_) + " must be there, aligned to " +
                    std::to_string(kScaleAlignment) + " bytes");
  }
  Set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &right, sizeof(right));
  Set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &left, sizeof(left));
}

GemmPlan::GemmPlan(cublasLtHandle_t handle, const GemmSpec& spec) : handle_(handle), spec_(spec) {
  cublasLtMatmulDesc_t operation = nullptr;
  CHECK_CUBLAS(cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  operation_.reset(operation);
  const cublasOperation_t a = spec.right_k_outer ? CUBLAS_OP_N : CUBLAS_OP_T;
  const cublasOperation_t b = spec.left_k_outer ? CUBLAS_OP_T : CUBLAS_OP_N;
  Set(CUBLASLT_MATMUL_DESC_TRANSA, &a, sizeof(a));
  Set(CUBLASLT_MATMUL_DESC_TRANSB, &b, sizeof(b));
  const int8_t fast = spec.fast_accumulation ? 1 : 0;
  Set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof(fast));
  left_ = spec.left_k_outer ? MakeMatrix(spec.left, spec.k, spec.m)
                            : MakeMatrix(spec.left, spec.m, spec.k);
  right_ = spec.right_k_outer ? MakeMatrix(spec.right, spec.k, spec.n)
                              : MakeMatrix(spec.right, spec.n, spec.k);
  out_ = MakeMatrix(spec.out, spec.m, spec.n);
  algorithm_ = Candidates(1).front();
}

std::vector<GemmAlgorithm> GemmPlan::Candidates(int limit) const {
  cublasLtMatmulPreference_t preference = nullptr;
  CHECK_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        Deleter<cublasLtMatmulPreferenceDestroy>>
      owner(preference);
  const uint64_t workspace = kGemmWorkspaceBytes;
  CHECK_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(limit));
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_.get(), right_.get(), left_.get(), out_.get(), out_.get(), preference,
      limit, results.data(), &count);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    throw CudaError("cuBLAS has no algorithm for the product " + ToString(spec_) +
                    " on this GPU; in FP8 all three sizes must be multiples of 16");
  }
  CHECK_CUBLAS(status);
  std::vector<GemmAlgorithm> algorithms;
  for (int i = 0; i < count; ++i) {
    const cublasLtMatmulHeuristicResult_t& result = results[static_cast<size_t>(i)];
    if (result.state == CUBLAS_STATUS_SUCCESS) {
      algorithms.push_back(std::bit_cast<GemmAlgorithm>(result.algo));
    }
  }
  if (algorithms.empty()) throw CudaError("cuBLAS: no algorithm is ready for " + ToString(spec_));
  return algorithms;
}

bool GemmPlan::Accepts(const GemmAlgorithm& algorithm) const {
  const auto algo = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
  cublasLtMatmulHeuristicResult_t result{};
  return cublasLtMatmulAlgoCheck(handle_, operation_.get(), right_.get(), left_.get(), out_.get(),
                                 out_.get(), &algo, &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<size_t>(kGemmWorkspaceBytes);
}

cublasStatus_t GemmPlan::Launch(const GemmAlgorithm& algorithm, const GemmArguments& arguments,
                                void* workspace, cudaStream_t stream) const {
  if (!Aligned(arguments.left, kGemmAlignment) || !Aligned(arguments.right, kGemmAlignment) ||
      !Aligned(arguments.out, kGemmAlignment) || !Aligned(arguments.addend, kGemmAlignment)) {
    throw CudaError("operands of " + ToString(spec_) + " must be aligned to " +
                    std::to_string(kGemmAlignment) + " bytes");
  }
  const void* const addend = arguments.addend != nullptr ? arguments.addend : arguments.out;
  if (IsFp8(spec_.left)) SetScales(arguments.left_scale_inv, arguments.right_scale_inv);
  const auto algo = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
  const float alpha = 1;
  const float beta = spec_.accumulate ? 1 : 0;
  return cublasLtMatmul(handle_, operation_.get(), &alpha, arguments.right, right_.get(),
                        arguments.left, left_.get(), &beta, addend, out_.get(), arguments.out,
                        out_.get(), &algo, workspace, kGemmWorkspaceBytes, stream);
}

void GemmPlan::Run(const GemmArguments& arguments, void* workspace, cudaStream_t stream) const {
  CHECK_CUBLAS(Launch(algorithm_, arguments, workspace, stream));
}

bool GemmPlan::Try(const GemmAlgorithm& algorithm, const GemmArguments& arguments, void* workspace,
                   cudaStream_t stream) const {
  return Launch(algorithm, arguments, workspace, stream) == CUBLAS_STATUS_SUCCESS;
}

}  // namespace muster::fp8::cuda
