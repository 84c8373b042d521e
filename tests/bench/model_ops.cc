#include "tests/bench/model_ops.h"

#include <utility>

#include "trainer/fp8/cuda/gemm_spec.h"
#include "trainer/kernels/cuda/fill_normal.h"
#include "trainer/tensor/cuda_check.h"

namespace muster::bench {
namespace {

using fp8::cuda::ElementType;
using fp8::cuda::GemmArguments;
using fp8::cuda::GemmSpec;

std::shared_ptr<DeviceBuffer> Random(ElementType type, int64_t count, cudaStream_t stream) {
  static uint64_t seed = 100;
  auto buffer = std::make_shared<DeviceBuffer>(count * fp8::cuda::BytesOf(type));
  ++seed;
  if (type == ElementType::kBf16) {
    kernels::cuda::FillNormal(buffer->get<Bfloat16>(), count, 1, seed, stream);
  } else if (type == ElementType::kFp32) {
    kernels::cuda::FillNormal(buffer->get<float>(), count, 1, seed, stream);
  } else {
    const fp8::Format format = type == ElementType::kE4m3 ? fp8::Format::kE4m3 : fp8::Format::kE5m2;
    kernels::cuda::FillNormal(buffer->get<uint8_t>(), format, count,
                              kernels::cuda::ScaledDeviation(format), seed, stream);
  }
  MUSTER_CUDA_CHECK(cudaGetLastError());
  return buffer;
}

std::shared_ptr<DeviceBuffer> Left(const GemmSpec& s, cudaStream_t stream) {
  return Random(s.left, s.m * s.k, stream);
}
std::shared_ptr<DeviceBuffer> Right(const GemmSpec& s, cudaStream_t stream) {
  return Random(s.right, s.n * s.k, stream);
}
// Room for an fp32 result, so that the main gradient's type can change.
std::shared_ptr<DeviceBuffer> Out(const GemmSpec& s) {
  return std::make_shared<DeviceBuffer>(s.m * s.n * (s.accumulate ? 4 : BytesOf(s.out)));
}

}  // namespace

LinearOps::LinearOps(std::string name, const fp8::cuda::LinearGemms& gemms, bool fp8,
                     cudaStream_t stream)
    : name_(std::move(name)),
      gemms_(gemms),
      scales_(std::vector<float>{1 / kernels::cuda::ScaledDeviation(fp8::Format::kE4m3), 0, 0, 0,
                                 1 / kernels::cuda::ScaledDeviation(fp8::Format::kE5m2)}) {
  forward_ = {Left(gemms.forward, stream), Right(gemms.forward, stream), Out(gemms.forward)};
  input_gradient_.left = Left(gemms.input_gradient, stream);
  input_gradient_.out = Out(gemms.input_gradient);
  weight_gradient_.out = Out(gemms.weight_gradient);
  weight_gradient_.out->FillBytes(0);
  if (fp8) {
    input_gradient_.right = Right(gemms.input_gradient, stream);
    weight_gradient_.left = Left(gemms.weight_gradient, stream);
    weight_gradient_.right = Right(gemms.weight_gradient, stream);
  } else {
    input_gradient_.right = forward_.right;
    weight_gradient_.left = input_gradient_.left;
    weight_gradient_.right = forward_.left;
  }
}

GemmArguments LinearOps::Arguments(const Operands& operands, const float* scales) {
  return {operands.left->get(), operands.right->get(), operands.out->get(), scales, scales + 4};
}

void LinearOps::Forward(const fp8::cuda::Gemms& plans, void* workspace, cudaStream_t stream) const {
  plans.Plan(gemms_.forward).Run(Arguments(forward_, scales_.get<float>()), workspace, stream);
}

void LinearOps::InputGradient(const fp8::cuda::Gemms& plans, void* workspace,
                              cudaStream_t stream) const {
  plans.Plan(gemms_.input_gradient)
      .Run(Arguments(input_gradient_, scales_.get<float>()), workspace, stream);
}

void LinearOps::WeightGradient(const fp8::cuda::Gemms& plans, void* workspace,
                               cudaStream_t stream) const {
  plans.Plan(gemms_.weight_gradient)
      .Run(Arguments(weight_gradient_, scales_.get<float>()), workspace, stream);
}

AttentionOps::AttentionOps(const kernels::cuda::AttentionSpec& s, cudaStream_t stream)
    : qkv_(s.batch * s.positions * s.RowElements() * 2),
      dqkv_(qkv_.bytes()),
      out_(s.batch * s.positions * s.heads * s.head_dim * 2),
      dout_(out_.bytes()),
      logsumexp_(s.batch * s.positions * s.heads * 4) {
  kernels::cuda::FillNormal(qkv_.get<Bfloat16>(), qkv_.bytes() / 2, 1, 31, stream);
  kernels::cuda::FillNormal(dout_.get<Bfloat16>(), dout_.bytes() / 2, 1, 32, stream);
  MUSTER_CUDA_CHECK(cudaGetLastError());
}

void AttentionOps::Forward(const kernels::cuda::AttentionPlan& plan, void* workspace,
                           cudaStream_t stream) const {
  plan.Forward(qkv_.get<Bfloat16>(), out_.get<Bfloat16>(), logsumexp_.get<float>(), workspace,
               stream);
}

void AttentionOps::Backward(const kernels::cuda::AttentionPlan& plan, void* workspace,
                            cudaStream_t stream) const {
  plan.Backward(qkv_.get<Bfloat16>(), out_.get<Bfloat16>(), logsumexp_.get<float>(),
                dout_.get<Bfloat16>(), dqkv_.get<Bfloat16>(), workspace, stream);
}

}  // namespace muster::bench
