#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>

#include "trainer/kernels/attention.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/rmsnorm.h"
#include "trainer/kernels/swiglu.h"
#include "trainer/tensor/dtype.h"

// Forward and backward of each kernel against the same formula in LibTorch's operators,
// differentiated by autograd in fp64.

namespace muster::kernels {
namespace {

class AutogradTest : public ::testing::TestWithParam<at::ScalarType> {
 protected:
  // Random, and exact in the tested type.
  at::Tensor Random(at::IntArrayRef sizes) const {
    return at::randn(sizes, at::kDouble).to(GetParam());
  }
  // The same values as the start of an fp64 graph.
  static at::Tensor Leaf(const at::Tensor& tensor) {
    return tensor.to(at::kDouble).clone().requires_grad_(true);
  }
  double Tolerance() const {
    if (GetParam() == at::kDouble) return 1e-13;
    return GetParam() == at::kFloat ? 1e-6 : 1e-2;
  }
  void ExpectNear(const at::Tensor& actual, const at::Tensor& expected, const char* what) const {
    const at::Tensor wanted = expected.detach();
    const double error = actual.to(at::kDouble).sub(wanted).norm().item<double>();
    EXPECT_LE(error, Tolerance() * wanted.norm().item<double>()) << what;
  }
};

TEST_P(AutogradTest, RmsNorm) {
  for (const double offset : {0.0, 1.0}) {
    const at::Tensor x = Random({7, 37}), weight = Random({37}), dy = Random({7, 37});
    const at::Tensor residual = Random({7, 37});
    const at::Tensor y = at::empty_like(x), dx = residual.clone();
    const at::Tensor rstd = at::empty({7}, AccumulateType(GetParam()));
    const at::Tensor dweight = at::zeros({37}, AccumulateType(GetParam()));
    DispatchFloating(GetParam(), [&]<typename T>(std::type_identity<T>) {
      const RmsNormShape shape{7, 37, 1e-5, offset};
      RmsNormForward(shape, Data<T>(x), Data<T>(weight), Data<T>(y), Data<Accumulate<T>>(rstd));
      RmsNormBackward(shape, Data<T>(dy), Data<T>(x), Data<T>(weight), Data<Accumulate<T>>(rstd),
                      Data<T>(dx), Data<Accumulate<T>>(dweight));
    });
    const at::Tensor x64 = Leaf(x), w64 = Leaf(weight);
    const at::Tensor scale = x64.mul(x64).mean(-1, /*keepdim=*/true).add(1e-5).rsqrt();
    const at::Tensor y64 = x64.mul(scale).mul(w64.add(offset));
    y64.backward(dy.to(at::kDouble));
    ExpectNear(y, y64, "y");
    ExpectNear(dx, x64.grad().add(residual), "dx");
    ExpectNear(dweight, w64.grad(), "dweight");
  }
}

TEST_P(AutogradTest, Swiglu) {
  const at::Tensor gate_up = Random({5, 2 * 19}).mul(3), dy = Random({5, 19});
  const at::Tensor y = at::empty({5, 19}, GetParam()), dgate_up = at::empty_like(gate_up);
  DispatchFloating(GetParam(), [&]<typename T>(std::type_identity<T>) {
    SwigluForward(5, 19, Data<T>(gate_up), Data<T>(y));
    SwigluBackward(5, 19, Data<T>(dy), Data<T>(gate_up), Data<T>(dgate_up));
  });
  const at::Tensor leaf = Leaf(gate_up);
  const at::Tensor y64 = at::silu(leaf.narrow(1, 0, 19)).mul(leaf.narrow(1, 19, 19));
  y64.backward(dy.to(at::kDouble));
  ExpectNear(y, y64, "y");
  ExpectNear(dgate_up, leaf.grad(), "dgate_up");
}

TEST_P(AutogradTest, CrossEntropy) {
  const int64_t V = 101;
  const at::Tensor logits = Random({6, V}).mul(4), gradient = logits.clone();
  const at::Tensor labels = at::empty({6}, at::kLong), mask = at::ones({6}, at::kFloat);
  for (int64_t i = 0; i < 6; ++i) Data<int64_t>(labels)[i] = 17 * i;
  Data<float>(mask)[2] = 0;
  Data<float>(mask)[4] = 0.5f;
  double loss = 0;
  DispatchFloating(GetParam(), [&]<typename T>(std::type_identity<T>) {
    const CrossEntropySum sum = CrossEntropy(6, V, Data<T>(gradient), Data<int64_t>(labels),
                                             Data<float>(mask), /*gradient=*/true);
    EXPECT_EQ(sum.tokens, 4.5);
    loss = sum.loss;
  });
  const at::Tensor leaf = Leaf(logits);
  const at::Tensor picked = leaf.log_softmax(-1).gather(1, labels.unsqueeze(1)).squeeze(1);
  const at::Tensor loss64 = picked.neg().mul(mask).sum();
  loss64.backward();
  EXPECT_NEAR(loss / loss64.item<double>(), 1, 1e-6);
  ExpectNear(gradient, leaf.grad(), "dlogits");
}

TEST_P(AutogradTest, AttentionWithSharedKeyAndValueHeads) {
  const int64_t B = 2, H = 6, G = 2, S = 33, D = 8;
  const at::Tensor q = Random({B, S, H, D}), k = Random({B, S, G, D}), v = Random({B, S, G, D});
  const at::Tensor dout = Random({B, S, H, D});
  const AttentionResult result = AttentionForward(q, k, v);
  const AttentionGradient gradient = AttentionBackward(dout, q, k, v, result);
  EXPECT_TRUE(result.out_BSHD.is_contiguous());
  EXPECT_TRUE(gradient.dq_BSHD.is_contiguous() && gradient.dk_BSGD.is_contiguous() &&
              gradient.dv_BSGD.is_contiguous());

  const at::Tensor q64 = Leaf(q), k64 = Leaf(k), v64 = Leaf(v);
  const at::Tensor queries = q64.transpose(1, 2);
  const at::Tensor keys = k64.repeat_interleave(H / G, 2).transpose(1, 2);
  const at::Tensor values = v64.repeat_interleave(H / G, 2).transpose(1, 2);
  const at::Tensor hidden = at::ones({S, S}, at::kBool).triu(1);
  const at::Tensor scores = queries.matmul(keys.transpose(-1, -2))
                                .div(std::sqrt(static_cast<double>(D)))
                                .masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor out64 = scores.softmax(-1).matmul(values).transpose(1, 2);
  out64.backward(dout.to(at::kDouble));
  ExpectNear(result.out_BSHD, out64, "out");
  ExpectNear(gradient.dq_BSHD, q64.grad(), "dq");
  ExpectNear(gradient.dk_BSGD, k64.grad(), "dk");
  ExpectNear(gradient.dv_BSGD, v64.grad(), "dv");
}

TEST_P(AutogradTest, AttentionWithinSegmentsIsAttentionUnderTheirMask) {
  const int64_t B = 2, H = 6, G = 2, S = 33, D = 8;
  const std::vector<int32_t> cu_seqlens = {0, 1, 20, 33, 50, 66};  // every row begins a segment
  const at::Tensor q = Random({B, S, H, D}), k = Random({B, S, G, D}), v = Random({B, S, G, D});
  const at::Tensor dout = Random({B, S, H, D});
  const AttentionResult result = AttentionForward(q, k, v, cu_seqlens);
  const AttentionGradient gradient = AttentionBackward(dout, q, k, v, result, cu_seqlens);

  // All tokens in a row, and a mask that hides later tokens and those of other segments.
  at::Tensor hidden = at::ones({B * S, B * S}, at::kBool);
  for (size_t i = 0; i + 1 < cu_seqlens.size(); ++i) {
    const int64_t begin = cu_seqlens[i], size = cu_seqlens[i + 1] - begin;
    hidden.narrow(0, begin, size)
        .narrow(1, begin, size)
        .copy_(at::ones({size, size}, at::kBool).triu(1));
  }
  const at::Tensor q64 = Leaf(q), k64 = Leaf(k), v64 = Leaf(v);
  const auto heads_first = [&](const at::Tensor& heads) {
    return heads.repeat_interleave(H / heads.size(2), 2).view({B * S, H, D}).transpose(0, 1);
  };
  const at::Tensor scores = heads_first(q64)
                                .matmul(heads_first(k64).transpose(-1, -2))
                                .div(std::sqrt(static_cast<double>(D)))
                                .masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor out64 =
      scores.softmax(-1).matmul(heads_first(v64)).transpose(0, 1).reshape({B, S, H, D});
  out64.backward(dout.to(at::kDouble));
  ExpectNear(result.out_BSHD, out64, "out");
  ExpectNear(gradient.dq_BSHD, q64.grad(), "dq");
  ExpectNear(gradient.dk_BSGD, k64.grad(), "dk");
  ExpectNear(gradient.dv_BSGD, v64.grad(), "dv");
}

INSTANTIATE_TEST_SUITE_P(Types, AutogradTest,
                         ::testing::Values(at::kDouble, at::kFloat, at::kBFloat16),
                         [](const auto& instance) { return c10::toString(instance.param); });

}  // namespace
}  // namespace muster::kernels
