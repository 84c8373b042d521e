#include "tests/device/host_ops.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/fp8_cast.h"
#include "trainer/kernels/rmsnorm_fp8.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/model/init.h"

namespace muster::device {
namespace {

using fp8::cuda::ElementType;
using fp8::cuda::GemmArguments;
using fp8::cuda::GemmSpec;
using kernels::Fp8Output;

at::Tensor ToFloat(const void* data, ElementType type, int64_t rows, int64_t columns) {
  const at::Tensor values = at::empty({rows, columns}, at::kFloat);
  float* const out = values.data_ptr<float>();
  const auto* const bytes = static_cast<const uint8_t*>(data);
  for (int64_t i = 0; i < rows * columns; ++i) {
    switch (type) {
      case ElementType::kE4m3:
        out[i] = fp8::Decode(fp8::Format::kE4m3, bytes[i]);
        break;
      case ElementType::kE5m2:
        out[i] = fp8::Decode(fp8::Format::kE5m2, bytes[i]);
        break;
      case ElementType::kBf16:
        out[i] = float(static_cast<const Bfloat16*>(data)[i]);
        break;
      case ElementType::kFp32:
        out[i] = static_cast<const float*>(data)[i];
    }
  }
  return values;
}

class HostOps : public Ops {
 public:
  ~HostOps() override {
    for (std::byte* memory : memory_) std::free(memory);
  }

  void StartProfile() override {}
  std::vector<OpTime> TakeProfile() override { return {}; }

  std::byte* Allocate(int64_t bytes) override {
    const size_t size = (static_cast<size_t>(bytes) + 255) / 256 * 256;
    memory_.push_back(static_cast<std::byte*>(std::aligned_alloc(256, size)));
    std::memset(memory_.back(), 0, size);
    return memory_.back();
  }
  void Upload(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Download(void* to, const void* from, int64_t bytes) override { Copy(to, from, bytes); }
  void Copy(void* to, const void* from, int64_t bytes) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void Zero(void* to, int64_t bytes) override { std::memset(to, 0, static_cast<size_t>(bytes)); }

  void Prepare(std::span<const GemmSpec>, const kernels::QkvShape& attention, int64_t) override {
    qkv_ = attention;
  }
  int64_t WorkspaceBytes() const override { return 0; }
  void UseWorkspace(std::byte*) override {}

  void Replay(int, const std::function<void()>& work) override { work(); }

  void Gemm(const GemmSpec& spec, const GemmArguments& a) override {
    at::Tensor left = spec.left_k_outer ? ToFloat(a.left, spec.left, spec.k, spec.m).t()
                                        : ToFloat(a.left, spec.left, spec.m, spec.k);
    at::Tensor right = spec.right_k_outer ? ToFloat(a.right, spec.right, spec.k, spec.n)
                                          : ToFloat(a.right, spec.right, spec.n, spec.k).t();
    const at::Tensor sums = at::mm(left, right).contiguous();
    float* const sum = sums.data_ptr<float>();
    const float scale = fp8::cuda::IsFp8(spec.left) ? *a.left_scale_inv * *a.right_scale_inv : 1.0f;
    const void* const addend = a.addend != nullptr ? a.addend : a.out;
    const auto plus = [&]<typename T>(T*, int64_t i) {
      const float added = spec.accumulate ? float(static_cast<const T*>(addend)[i]) : 0;
      static_cast<T*>(a.out)[i] = T(added + sum[i] * scale);
    };
    for (int64_t i = 0; i < spec.m * spec.n; ++i) {
      if (spec.out == ElementType::kBf16) {
        plus(static_cast<Bfloat16*>(nullptr), i);
      } else {
        plus(static_cast<float*>(nullptr), i);
      }
    }
  }
  void EmbeddingForward(int64_t rows, int64_t columns, const int64_t* tokens, const Bfloat16* table,
                        Bfloat16* y) override {
    kernels::EmbeddingForward(rows, columns, int64_t{1} << 40, tokens, table, y);
  }
  void EmbeddingGroupsBackward(int64_t groups, int64_t columns, const int32_t* tokens,
                               const int32_t* starts, const int32_t* positions, const Bfloat16* dy,
                               float* dtable) override {
    kernels::EmbeddingGroupsBackward(groups, columns, tokens, starts, positions, dy, dtable);
  }
  void RmsNormForward(const kernels::RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                      Bfloat16* y, float* rstd) override {
    kernels::RmsNormForward(shape, x, weight, y, rstd);
  }
  void RmsNormFp8(const kernels::RmsNormShape& shape, const Bfloat16* x, const Bfloat16* weight,
                  float* rstd, const Fp8Output& y) override {
    kernels::RmsNormFp8(shape, x, weight, rstd, y);
  }
  void RmsNormBackwardFp8(const kernels::RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                          const Bfloat16* weight, const float* rstd, Bfloat16* dx, float* dweight,
                          const Fp8Output& dx_fp8) override {
    kernels::RmsNormBackwardFp8(shape, dy, x, weight, rstd, dx, dweight, dx_fp8);
  }
  void RmsNormBackward(const kernels::RmsNormShape& shape, const Bfloat16* dy, const Bfloat16* x,
                       const Bfloat16* weight, const float* rstd, Bfloat16* dx,
                       float* dweight) override {
    kernels::RmsNormBackward(shape, dy, x, weight, rstd, dx, dweight);
  }
  void RopePacked(const kernels::QkvShape& shape, const float* cos, const float* sin,
                  Bfloat16* qkv) override {
    kernels::RopePacked(shape, cos, sin, qkv);
  }
  void RopePackedGradient(const kernels::QkvShape& shape, const float* cos, const float* sin,
                          Bfloat16* dqkv) override {
    kernels::RopePackedGradient(shape, cos, sin, dqkv);
  }
  void RopePackedGradientFp8(const kernels::QkvShape& shape, const float* cos, const float* sin,
                             const Bfloat16* dqkv, const Fp8Output& out) override {
    kernels::RopePackedGradientFp8(shape, cos, sin, dqkv, out);
  }
  void AttentionForward(const Bfloat16* qkv, Bfloat16* out, float* logsumexp) override {
    const auto [q, k, v] = Unpack(qkv);
    const kernels::AttentionResult result = kernels::AttentionForward(q, k, v);
    std::memcpy(out, result.out_BSHD.const_data_ptr(),
                static_cast<size_t>(result.out_BSHD.nbytes()));
    logsumexps_[logsumexp] = result.logsumexp;  // in LibTorch's own layout
  }
  void AttentionBackward(const Bfloat16* qkv, const Bfloat16* out, const float* logsumexp,
                         const Bfloat16* dout, Bfloat16* dqkv) override {
    const auto [q, k, v] = Unpack(qkv);
    const auto heads = [&](const Bfloat16* x) {
      return at::from_blob(const_cast<Bfloat16*>(x), q.sizes(), at::kBFloat16).clone();
    };
    kernels::AttentionResult result{heads(out), logsumexps_.at(logsumexp)};
    const kernels::AttentionGradient grad =
        kernels::AttentionBackward(heads(dout), q, k, v, result);
    const at::Tensor packed = Rows(dqkv);
    packed.narrow(2, 0, Queries()).copy_(grad.dq_BSHD);
    packed.narrow(2, Queries(), qkv_.groups).copy_(grad.dk_BSGD);
    packed.narrow(2, Queries() + qkv_.groups, qkv_.groups).copy_(grad.dv_BSGD);
  }
  void SwigluForward(int64_t rows, int64_t ffn, const Bfloat16* gate_up, Bfloat16* y) override {
    kernels::SwigluForward(rows, ffn, gate_up, y);
  }
  void SwigluForwardFp8(int64_t rows, int64_t ffn, const Bfloat16* gate_up,
                        const Fp8Output& y) override {
    kernels::SwigluForwardFp8(rows, ffn, gate_up, y);
  }
  void SwigluBackwardAgain(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                           Bfloat16* dgate_up, Bfloat16* y_again) override {
    kernels::SwigluBackwardAgain(rows, ffn, dy, gate_up, dgate_up, y_again);
  }
  void SwigluBackwardFp8(int64_t rows, int64_t ffn, const Bfloat16* dy, const Bfloat16* gate_up,
                         const Fp8Output& dgate_up, const Fp8Output& y_again) override {
    kernels::SwigluBackwardFp8(rows, ffn, dy, gate_up, dgate_up, y_again);
  }
  void CastToFp8(int64_t rows, int64_t columns, const Bfloat16* x, const Fp8Output& out) override {
    Cast(rows, columns, x, out);
  }
  void CastToFp8(int64_t rows, int64_t columns, const float* x, const Fp8Output& out) override {
    Cast(rows, columns, x, out);
  }
  void CastToBf16(int64_t count, const float* x, Bfloat16* copy) override {
    for (int64_t i = 0; i < count; ++i) copy[i] = Bfloat16(x[i]);
  }
  void CrossEntropy(int64_t rows, int64_t vocab, Bfloat16* logits, const int64_t* labels,
                    const float* mask, bool gradient, float* losses) override {
    for (int64_t row = 0; row < rows; ++row) {
      const kernels::CrossEntropySum sum =
          kernels::CrossEntropy(1, vocab, logits + row * vocab, labels + row, mask + row, gradient);
      losses[row] = mask[row] == 0 ? 0 : static_cast<float>(sum.loss / sum.tokens);
    }
  }
  void AddLosses(int64_t rows, const float* losses, const float* mask, double* sums) override {
    for (int64_t row = 0; row < rows; ++row) {
      sums[0] += static_cast<double>(mask[row]) * static_cast<double>(losses[row]);
      sums[1] += static_cast<double>(mask[row]);
    }
  }
  void UpdateDelayed(const fp8::DelayedRule& rule, int64_t count, const float* reduced_amax,
                     float* scale, float* history) override {
    const std::vector<float> reduced(reduced_amax, reduced_amax + count);  // may be history's row
    fp8::UpdateDelayed(rule, count, reduced.data(), scale, history);
  }
  void TakeCurrentScale(fp8::Format format, float* amax, float* scale) override {
    *scale = fp8::CurrentScale(*amax, format);
    *amax = 0;
  }
  void FillInitial(uint64_t key, double std_dev, int64_t first_index, int64_t count,
                   float* out) override {
    for (int64_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>(std_dev * model::InitialNormal(key, first_index + i));
    }
  }
  void Fill(int64_t count, float value, float* out) override { std::fill_n(out, count, value); }
  void Scale(int64_t count, float factor, float* x) override {
    for (int64_t i = 0; i < count; ++i) x[i] *= factor;
  }
  void AddSquares(int64_t count, const float* grad, double* sum) override {
    kernels::AddSquares(count, grad, sum);
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const float* grad,
                float* master, float* exp_avg, float* exp_avg_sq,
                const Fp8Output& weight) override {
    kernels::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight);
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const float* grad,
                float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                const Fp8Output& weight) override {
    kernels::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight);
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const Bfloat16* grad,
                float* master, float* exp_avg, float* exp_avg_sq,
                const Fp8Output& weight) override {
    kernels::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight);
  }
  void AdamWFp8(const kernels::AdamWRule& rule, int64_t rows, int64_t columns, const Bfloat16* grad,
                float* master, Bfloat16* exp_avg, Bfloat16* exp_avg_sq,
                const Fp8Output& weight) override {
    kernels::AdamWFp8(rule, rows, columns, grad, master, exp_avg, exp_avg_sq, weight);
  }
  void Scale(int64_t count, float factor, Bfloat16* x) override {
    for (int64_t i = 0; i < count; ++i) x[i] = Bfloat16(float(x[i]) * factor);
  }
  void AddSquares(int64_t count, const Bfloat16* grad, double* sum) override {
    kernels::AddSquares(count, grad, sum);
  }
  void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad, float* master,
                 float* exp_avg, float* exp_avg_sq, Bfloat16* copy) override {
    kernels::AdamWBf16(rule, count, grad, master, exp_avg, exp_avg_sq, copy);
  }
  void AdamWBf16(const kernels::AdamWRule& rule, int64_t count, const float* grad, float* master,
                 Bfloat16* exp_avg, Bfloat16* exp_avg_sq, Bfloat16* copy) override {
    kernels::AdamWBf16(rule, count, grad, master, exp_avg, exp_avg_sq, copy);
  }

 private:
  struct Heads {
    at::Tensor q, k, v;
  };

  int64_t Queries() const { return qkv_.groups * qkv_.heads_per_group; }
  // [B, S, all heads, D] over packed rows.
  at::Tensor Rows(Bfloat16* qkv) const {
    return at::from_blob(qkv,
                         {qkv_.batch, qkv_.positions, Queries() + 2 * qkv_.groups, qkv_.head_dim},
                         at::kBFloat16);
  }
  Heads Unpack(const Bfloat16* qkv) const {
    const at::Tensor rows = Rows(const_cast<Bfloat16*>(qkv));
    return {rows.narrow(2, 0, Queries()).contiguous(),
            rows.narrow(2, Queries(), qkv_.groups).contiguous(),
            rows.narrow(2, Queries() + qkv_.groups, qkv_.groups).contiguous()};
  }

  template <typename T>
  static void Cast(int64_t rows, int64_t columns, const T* x, const Fp8Output& out) {
    if (out.amax != nullptr) *out.amax = std::max(*out.amax, kernels::Amax(rows * columns, x));
    if (out.scale == nullptr) return;
    if (out.scale_inv != nullptr) *out.scale_inv = fp8::ScaleInverse(*out.scale);
    for (int64_t i = 0; i < rows * columns; ++i) {
      const uint8_t code = fp8::Encode(out.format, static_cast<float>(x[i]) * *out.scale);
      if (out.codes != nullptr) out.codes[i] = code;
      if (out.transposed != nullptr) out.transposed[i % columns * rows + i / columns] = code;
    }
  }

  std::vector<std::byte*> memory_;
  kernels::QkvShape qkv_{};
  std::map<const float*, at::Tensor> logsumexps_;
};

}  // namespace

std::unique_ptr<Ops> MakeHostOps() {
  return std::make_unique<HostOps>();
}

}  // namespace muster::device
