#include "trainer/device/cuda_ops.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "trainer/device/cuda_graph.h"
#include "trainer/device/cuda_profile.h"
#include "trainer/device/pinned_ring.h"
#include "trainer/fp8/cuda/gemms.h"
#include "trainer/fp8/cuda/tuner.h"
#include "trainer/kernels/cuda/adamw_bf16.h"
#include "trainer/kernels/cuda/adamw_fp8.h"
#include "trainer/kernels/cuda/attention.h"
#include "trainer/kernels/cuda/cross_entropy.h"
#include "trainer/kernels/cuda/current_scaling.h"
#include "trainer/kernels/cuda/delayed_scaling.h"
#include "trainer/kernels/cuda/elementwise.h"
#include "trainer/kernels/cuda/embedding.h"
#include "trainer/kernels/cuda/fp8_cast.h"
#include "trainer/kernels/cuda/initial_weights.h"
#include "trainer/kernels/cuda/rmsnorm_backward.h"
#include "trainer/kernels/cuda/rmsnorm_forward.h"
#include "trainer/kernels/cuda/rmsnorm_fp8.h"
#include "trainer/kernels/cuda/rope_packed.h"
#include "trainer/kernels/cuda/swiglu_fp8.h"
#include "trainer/tensor/cuda_check.h"

namespace muster::device {
namespace {

namespace cuda = kernels::cuda;
using fp8::cuda::GemmArguments;
using fp8::cuda::GemmSpec;
using kernels::Fp8Output;

// Memory that is freed with its owner.
struct DeviceFree {
  void operator()(std::byte* memory) const { cudaFree(memory); }
};
using DeviceMemory = std::unique_ptr<std::byte, DeviceFree>;

DeviceMemory AllocateDevice(int64_t bytes) {
  void* memory = nullptr;
  const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  if (cudaMalloc(&memory, size) == cudaErrorMemoryAllocation) {
    size_t free = 0, total = 0;
    cudaGetLastError();
    MUSTER_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    throw CudaError("the plan needs " + std::to_string(bytes >> 20) + " MiB of GPU memory, but " +
                    std::to_string(free >> 20) + " of " + std::to_string(total >> 20) +
                    " MiB are free; a smaller --micro-batch-size or bf16 moments "
                    "(--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16) need less");
  }
  return DeviceMemory(static_cast<std::byte*>(memory));
}

class Stream {
 public:
  explicit Stream(int ordinal) {
    MUSTER_CUDA_CHECK(cudaSetDevice(ordinal));
    MUSTER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaOps : public Ops {
 public:
  explicit CudaOps(const CudaOptions& options)
      : options_(options),
        owner_(options.ordinal),
        stream_(owner_.get()),
        ring_(stream_),
        gemms_(
            {.cache_file = options.gemm_cache,
             .candidates = options.gemm_candidates,
             .note = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }}) {
  }
  ~CudaOps() override { cudaStreamSynchronize(stream_); }

  std::byte* Allocate(int64_t bytes) override {
    memory_.push_back(AllocateDevice(bytes));
    Zero(memory_.back().get(), bytes);
    return memory_.back().get();
  }
  void Upload(void* to, const void* from, int64_t bytes) override { ring_.Upload(to, from, bytes); }
  void Download(void* to, const void* from, int64_t bytes) override {
    MUSTER_CUDA_CHECK(
        cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_));
    MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream_));
  }
  void Copy(void* to, const void* from, int64_t bytes) override {
    MUSTER_CUDA_CHECK(
        cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_));
  }
  void Zero(void* to, int64_t bytes) override {
    MUSTER_CUDA_CHECK(cudaMemsetAsync(to, 0, static_cast<size_t>(bytes), stream_));
    if (profile_) Done("Zero");
  }

  void Prepare(std::span<const GemmSpec> products, const kernels::QkvShape& qkv,
               int64_t norm_columns) override {
    int64_t scratch = 0;
    for (const GemmSpec& spec : products) {
      scratch = std::max(scratch, fp8::cuda::TuningBytes(spec));
    }
    {
      const DeviceMemory memory = AllocateDevice(scratch);
      gemms_.Prepare(products, {memory.get(), static_cast<size_t>(scratch)}, stream_);
    }
    const cuda::AttentionSpec spec{qkv.batch,  qkv.positions, qkv.groups * qkv.heads_per_group,
                                   qkv.groups, qkv.head_dim,  options_.deterministic};
    attention_ = &attentions_.Plan(spec, {}, stream_);
    workspace_bytes_ =
        std::max({fp8::cuda::kGemmWorkspaceBytes, attention_->WorkspaceBytes(),
                  cuda::RmsNormBackwardFp8Workspace(qkv.batch * qkv.positions, norm_columns) *
                      int64_t{sizeof(float)},
                  cuda::AddSquaresWorkspace() * int64_t{sizeof(double)}});
  }
  int64_t WorkspaceBytes() const override { return workspace_bytes_; }
  void UseWorkspace(std::byte* workspace) override { workspace_ = workspace; }

  void StartProfile() override { profile_ = std::make_unique<CudaProfile>(stream_); }
  std::vector<OpTime> TakeProfile() override {
    if (!profile_) return {};
    return std::exchange(profile_, nullptr)->Times();
  }

  void Replay(int key, const std::function<void()>& work) override {
    if (profile_ || !options_.graphs) return work();
    graphs_[key].Run(work, stream_);
  }

  void Gemm(const GemmSpec& spec, const GemmArguments& arguments) override {
    gemms_.Plan(spec).Run(arguments, workspace_, stream_);
    if (profile_) Done("Gemm " + ToString(spec));
  }
  void EmbeddingForward(int64_t rows, int64_t columns, const int64_t* tokens, const Bfloat16* table,
                        Bfloat16* y) override {
    cuda::EmbeddingForward(rows, columns, tokens, table, y, stream_);
    Done("EmbeddingForward");
  }
  void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                               const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                               float* dtable) override {
    cuda::EmbeddingGroupsBackward(groups, columns, tokens, starts, positions, dy, dtable, stream_);
    Done("EmbeddingGroupsBackward");
  }
  void RmsNormForward(const kernels::RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                      Bfloat16* y, float* rstd) override {
    cuda::RmsNormForward(shape, x, weight, y, rstd, stream_);
    Done("RmsNormForward");
  }
  void RmsNormFp8(const kernels::RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                  float* rstd, const Fp8Output& y) override {
    cuda::RmsNormFp8(shape, x, weight, rstd, y, stream_);
    Done("RmsNormFp8");
  }
  void RmsNormBackwardFp8(const kernels::RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                          const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                          const Fp8Output& dx_fp8) override {
    cuda::RmsNormBackwardFp8(shape, dy, x, weight, rstd, dx, dweight, dx_fp8,
                             reinterpret_cast<float*>(workspace_), stream_);
    Done("RmsNormBackwardFp8");
  }
  void RmsNormBackward(const kernels::RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                       const Bfloat16* weight, const float* rstd, Bfloat16* dx,
                       float* dweight) override {
    cuda::RmsNormBackward(shape, dy, x, weight, rstd, dx, dweight,
                          reinterpret_cast<float*>(workspace_), stream_);
    Done("RmsNormBackward");
  }
  void RopePacked(const kernels::QkvShape& shape, const float* cos, const float* sin,
                  Bfloat16* qkv) override {
    cuda::RopePacked(shape, cos, sin, qkv, stream_);
    Done("RopePacked");
  }
  void RopePackedGradient(const kernels::QkvShape& shape, const float* cos, const float* sin,
                          Bfloat16* dqkv) override {
    cuda::RopePackedGradient(shape, cos, sin, dqkv, stream_);
    Done("RopePackedGradient");
  }
  void RopePackedGradientFp8(const kernels::QkvShape& shape, const float* cos, const float* sin,
                             const Bfloat16* dqkv, const Fp8Output& out) override {
    cuda::RopePackedGradientFp8(shape, cos, sin, dqkv, out, stream_);
    Done("RopePackedGradientFp8");
  }
  void AttentionForward(const Bfloat16* qkv, Bfloat16* out, float* logsumexp) override {
    attention_->Forward(qkv, out, logsumexp, workspace_, stream_);
    Done("AttentionForward");
  }
  void AttentionBackward(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                         const Bfloat16* dout, Bfloat16* dqkv) override {
    attention_->Backward(qkv, out, logsumexp, dout, dqkv, workspace_, stream_);
    Done("AttentionBackward");
  }
  void SwigluForward(int64_t rows, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y) override {
    cuda::SwigluForward(rows, ffn, gate_up, y, stream_);
    Done("SwigluForward");
  }
  void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up,
                        const Fp8Output& y) override {
    cuda::SwigluForwardFp8(rows, ffn, gate_up, y, stream_);
    Done("SwigluForwardFp8");
  }
  void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                           Bfloat16* dgate_up, Bfloat16* y_again) override {
    cuda::SwigluBackwardAgain(rows, ffn, dy, gate_up, dgate_up, y_again, stream_);
    Done("SwigluBackwardAgain");
  }
  void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         const Fp8Output& dgate_up, const Fp8Output& y_again) override {
    cuda::SwigluBackwardFp8(rows, ffn, dy, gate_up, dgate_up, y_again, stream_);
    Done("SwigluBackwardFp8");
  }
  void CastToFp8(int64_t rows, int64_t columns, const Bfloat16* x, const Fp8Output& out) override {
    Cast(rows, columns, x, out);
  }
  void CastToFp8(int64_t rows, int64_t columns, const float* x, const Fp8Output& out) override {
    Cast(rows, columns, x, out);
  }
  void CastToBf16(int64_t count, const float* x, Bfloat16* copy) override {
    cuda::CastToBf16(count, x, copy, stream_);
    Done("CastToBf16");
  }
  void CrossEntropy(int64_t rows, int64_t vocab, Bfloat16* logits, const int64_t* labels,
                    const float* mask, bool gradient, float* losses) override {
    cuda::CrossEntropy(rows, vocab, logits, labels, mask, gradient, losses, stream_);
    Done("CrossEntropy");
  }
  void AddLosses(int64_t rows, const float* losses, const float* mask, double* sums) override {
    cuda::AddLosses(rows, losses, mask, sums, stream_);
    Done("AddLosses");
  }
  void UpdateDelayed(const fp8::DelayedRule& rule, int64_t count, const float* reduced_amax,
                     float* scale, float* history) override {
    cuda::UpdateDelayed(rule, count, reduced_amax, scale, history, stream_);
    Done("UpdateDelayed");
  }
  void TakeCurrentScale(fp8::Format format, float* amax, float* scale) override {
    cuda::TakeCurrentScale(format, amax, scale, stream_);
    Done("TakeCurrentScale");
  }
  void FillInitial(uint64_t key, double std_dev, int64_t first_index, int64_t count,
                   float* out) override {
    cuda::FillInitial(key, std_dev, first_index, count, out, stream_);
    Done("FillInitial");
  }
  void Fill(int64_t count, float value, float* out) override {
    cuda::Fill(count, value, out, stream_);
    Done("Fill");
  }
  void Scale(int64_t count, float factor, float* x) override {
    cuda::Scale(count, factor, x, stream_);
    Done("Scale");
  }
  void AddSquares(int64_t count, const float* grad, double* sum) override {
    cuda::AddSquares(count, grad, sum, reinterpret_cast<double*>(workspace_), stream_);
    Done("AddSquares");
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const float* grad,
                float* master, float* exp_avg, float* exp_avg_sq,
                const Fp8Output& weight) override {
    cuda::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight, stream_);
    Done("AdamWFp8");
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const float* grad,
                float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                const Fp8Output& weight) override {
    cuda::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight, stream_);
    Done("AdamWFp8");
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const Bfloat16* grad,
                float* master, float* exp_avg, float* exp_avg_sq,
                const Fp8Output& weight) override {
    cuda::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight, stream_);
    Done("AdamWFp8");
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const Bfloat16* grad,
                float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                const Fp8Output& weight) override {
    cuda::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight, stream_);
    Done("AdamWFp8");
  }
  void Scale(int64_t count, float factor, Bfloat16* x) override {
    cuda::Scale(count, factor, x, stream_);
    Done("Scale");
  }
  void AddSquares(int64_t count, const Bfloat16* grad, double* sum) override {
    cuda::AddSquares(count, grad, sum, reinterpret_cast<double*>(workspace_), stream_);
    Done("AddSquares");
  }
  void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad, float* master,
                 float* exp_avg, float* exp_avg_sq, Bfloat16* copy) override {
    cuda::AdamWBf16(rule, count, grad, master, exp_avg, exp_avg_sq, copy, stream_);
    Done("AdamWBf16");
  }
  void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad, float* master,
                 Bfloat16* exp_avg, Bfloat16* exp_avg_sq, Bfloat16* copy) override {
    cuda::AdamWBf16(rule, count, grad, master, exp_avg, exp_avg_sq, copy, stream_);
    Done("AdamWBf16");
  }

 private:
  // At the end of each operation.
  void Done(std::string_view name) {
    MUSTER_CUDA_CHECK(cudaGetLastError());
    if (profile_) profile_->Mark(name, stream_);
  }

  template <typename T>
  void Cast(int64_t rows, int64_t columns, const T* x, const Fp8Output& out) {
    cuda::CastToFp8(x, rows, columns, out.scale, out.format, out.codes, out.transposed,
                    out.scale_inv, out.amax, stream_);
    Done("CastToFp8");
  }

  const CudaOptions options_;
  Stream owner_;
  const cudaStream_t stream_;
  PinnedRing ring_;
  fp8::cuda::Gemms gemms_;
  cuda::Attention attentions_;
  const cuda::AttentionPlan* attention_ = nullptr;
  int64_t workspace_bytes_ = 0;
  std::byte* workspace_ = nullptr;
  std::unique_ptr<CudaProfile> profile_;
  std::map<int, CudaGraph> graphs_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace

int GpuCount() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess || count == 0) {
    const char* const reason = status == cudaSuccess ? "none found" : cudaGetErrorString(status);
    throw CudaError(std::string("--device cuda: no GPU to use (") + reason +
                    "); --device cpu needs none");
  }
  return count;
}

std::unique_ptr<Ops> MakeCudaOps(const CudaOptions& options) {
  GpuCount();
  return std::make_unique<CudaOps>(options);
}

}  // namespace muster::device
