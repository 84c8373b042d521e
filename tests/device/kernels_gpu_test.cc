#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/device_buffer.h"
#include "tests/kernels/fp8_result.h"
#include "tests/kernels/gpu_testing.h"
#include "tests/kernels/kernel_inputs.h"
#include "trainer/fp8/scaling.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/cuda/adamw_bf16.h"
#include "trainer/kernels/cuda/cross_entropy.h"
#include "trainer/kernels/cuda/current_scaling.h"
#include "trainer/kernels/cuda/elementwise.h"
#include "trainer/kernels/cuda/embedding.h"
#include "trainer/kernels/cuda/fp8_cast.h"
#include "trainer/kernels/cuda/initial_weights.h"
#include "trainer/kernels/cuda/rmsnorm_forward.h"
#include "trainer/kernels/cuda/rmsnorm_fp8.h"
#include "trainer/kernels/cuda/rope_packed.h"
#include "trainer/kernels/cuda/swiglu_fp8.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/fp8_cast.h"
#include "trainer/model/init.h"

// The planned model's CUDA kernels against their CPU references. Skipped (exit status 77) where
// there is no device.

namespace muster::kernels {
namespace {

using fp8::Format;

void Finish() {
  MUSTER_CUDA_CHECK(cudaGetLastError());
  MUSTER_CUDA_CHECK(cudaDeviceSynchronize());
}

// Within `relative` of the expected value and `absolute`; all that is not finite is one class.
template <typename T>
void ExpectNear(const std::vector<T>& actual, const std::vector<T>& expected, float relative,
                float absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const float a = static_cast<float>(actual[i]), e = static_cast<float>(expected[i]);
    if (a == e || (!std::isfinite(a) && !std::isfinite(e))) continue;
    ASSERT_LE(std::fabs(a - e), absolute + relative * std::fabs(e)) << "element " << i;
  }
}

// Two roundings of nearly the same number differ by one step of bf16 at most.
constexpr float kBf16Step = 8e-3f;

constexpr QkvShape kShapes[] = {
    {1, 8, 1, 1, 16}, {2, 40, 2, 3, 64}, {1, 136, 2, 4, 128}, {3, 5, 1, 2, 32}};

TEST(RopePackedTest, EqualsTheReference) {
  for (const QkvShape& shape : kShapes) {
    for (const Input input : kInputs) {
      SCOPED_TRACE(shape.head_dim);
      const RopeTable<float> table = MakeRopeTable<float>(
          shape.positions, RopeFrequencies(shape.head_dim, 10000.0, config::RopeScaling{}));
      const int64_t tokens = shape.batch * shape.positions, columns = PackedColumns(shape);
      auto qkv = Bfloat16s(input, tokens * columns, 1), back = qkv;
      const DeviceBuffer cos(table.cos), sin(table.sin), device(qkv), device_back(qkv);
      Fp8Results out(tokens, columns, Format::kE5m2, 55.5f);
      RopePackedGradientFp8(shape, table.cos.data(), table.sin.data(), qkv.data(), out.Host());
      cuda::RopePackedGradientFp8(shape, cos.get<float>(), sin.get<float>(), device.get<Bfloat16>(),
                                  out.Device(), nullptr);
      Finish();
      out.ExpectSame();
      RopePacked(shape, table.cos.data(), table.sin.data(), qkv.data());
      cuda::RopePacked(shape, cos.get<float>(), sin.get<float>(), device.get<Bfloat16>(), nullptr);
      RopePackedGradient(shape, table.cos.data(), table.sin.data(), back.data());
      cuda::RopePackedGradient(shape, cos.get<float>(), sin.get<float>(),
                               device_back.get<Bfloat16>(), nullptr);
      Finish();
      // a cos - b sin can cancel: then its error is the operands'.
      const float operand = input == Input::kHuge ? 1e24f : 1e-6f;
      ExpectNear(device.ToHost<Bfloat16>(), qkv, kBf16Step, operand);
      ExpectNear(device_back.ToHost<Bfloat16>(), back, kBf16Step, operand);
    }
  }
}

TEST(OnlyAmaxTest, FindsTheLargestAndWritesNothing) {
  const int64_t rows = 200, columns = 136;
  for (const Input input : kInputs) {
    const auto x = Bfloat16s(input, 2 * rows * columns, 3);
    const DeviceBuffer device(x), amaxes(std::vector<float>(4, 0));
    std::vector<float> expected(4, 0);
    const auto host = [&](int i) {
      return Fp8Output{}.OnlyAmax(&expected[static_cast<size_t>(i)]);
    };
    const auto gpu = [&](int i) { return Fp8Output{}.OnlyAmax(amaxes.get<float>() + i); };
    SwigluForwardFp8(rows, columns, x.data(), host(0));
    cuda::SwigluForwardFp8(rows, columns, device.get<Bfloat16>(), gpu(0), nullptr);
    SwigluBackwardFp8(rows, columns, x.data(), x.data(), host(1), {});
    cuda::SwigluBackwardFp8(rows, columns, device.get<Bfloat16>(), device.get<Bfloat16>(), gpu(1),
                            {}, nullptr);
    std::vector<float> rstd(rows);
    const DeviceBuffer device_rstd(rstd);
    const RmsNormShape norm{rows, columns, 1e-5, 1};
    RmsNormFp8(norm, x.data(), x.data(), rstd.data(), host(2));
    cuda::RmsNormFp8(norm, device.get<Bfloat16>(), device.get<Bfloat16>(), device_rstd.get<float>(),
                     gpu(2), nullptr);
    expected[3] = Amax(rows * columns, x.data());
    cuda::CastToFp8(device.get<Bfloat16>(), rows, columns, nullptr, Format::kE5m2, nullptr, nullptr,
                    nullptr, amaxes.get<float>() + 3, nullptr);
    Finish();
    ExpectNear(amaxes.ToHost<float>(), expected, 1e-5f, 0);
  }
}

TEST(CurrentScalingTest, EqualsTheReference) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float amax : {0.0f, 1e-40f, 1e-38f, 0.3f, 447.0f, 3e38f, infinity, std::nanf("")}) {
    for (const Format format : {Format::kE4m3, Format::kE5m2}) {
      const DeviceBuffer floats(std::vector<float>{amax, -1});
      cuda::TakeCurrentScale(format, floats.get<float>(), floats.get<float>() + 1, nullptr);
      const auto result = floats.ToHost<float>();
      EXPECT_EQ(result[0], 0);
      EXPECT_EQ(result[1], fp8::CurrentScale(amax, format)) << amax;
    }
  }
}

TEST(RmsNormForwardTest, EqualsTheReference) {
  for (const int64_t columns : {1, 5, 64, 136, 4096, 5120, 9000}) {
    for (const Input input : {Input::kRandom, Input::kZero, Input::kSpecial, Input::kSubnormal}) {
      SCOPED_TRACE(columns);
      const RmsNormShape shape{9, columns, 1e-5, 1.0};
      const auto x = Bfloat16s(input, 9 * columns, 1);
      const auto weight = Bfloat16s(Input::kRandom, columns, 3);
      std::vector<Bfloat16> y(x.size());
      std::vector<float> rstd(9);
      RmsNormForward(shape, x.data(), weight.data(), y.data(), rstd.data());
      const DeviceBuffer device_x(x), device_weight(weight);
      const DeviceBuffer device_y(2 * 9 * columns), device_rstd(36);
      cuda::RmsNormForward(shape, device_x.get<Bfloat16>(), device_weight.get<Bfloat16>(),
                           device_y.get<Bfloat16>(), device_rstd.get<float>(), nullptr);
      Finish();
      ExpectNear(device_rstd.ToHost<float>(), rstd, 3e-6f, 0);
      ExpectNear(device_y.ToHost<Bfloat16>(), y, kBf16Step, 0);
    }
  }
}

TEST(SwigluTest, EqualsTheReference) {
  for (const int64_t ffn : {1, 7, 64, 328}) {
    for (const Input input : kInputs) {
      SCOPED_TRACE(ffn);
      const int64_t rows = 11, count = rows * ffn;
      auto gate_up = Bfloat16s(input, 2 * count, 1);
      const auto dy = Bfloat16s(input, count, 2);
      std::vector<Bfloat16> again(dy.size());
      const DeviceBuffer device_gate_up(gate_up), device_dy(dy), device_y(2 * count);
      const DeviceBuffer device_again(2 * count);
      cuda::SwigluForward(rows, ffn, device_gate_up.get<Bfloat16>(), device_y.get<Bfloat16>(),
                          nullptr);
      SwigluBackwardAgain(rows, ffn, dy.data(), gate_up.data(), gate_up.data(), again.data());
      cuda::SwigluBackwardAgain(rows, ffn, device_dy.get<Bfloat16>(),
                                device_gate_up.get<Bfloat16>(), device_gate_up.get<Bfloat16>(),
                                device_again.get<Bfloat16>(), nullptr);
      Finish();
      ExpectNear(device_y.ToHost<Bfloat16>(), again, kBf16Step, 1e-30f);
      ExpectNear(device_again.ToHost<Bfloat16>(), again, kBf16Step, 1e-30f);
      // 1 + gate * (1 - sigmoid) cancels where the gradient changes its sign.
      const float near_zero = input == Input::kHuge || input == Input::kSpecial ? 1e30f : 1e-5f;
      ExpectNear(device_gate_up.ToHost<Bfloat16>(), gate_up, kBf16Step, near_zero);
    }
  }
}

TEST(EmbeddingTest, EqualsTheReferenceToTheBit) {
  for (const int64_t columns : {1, 64, 100, 4096}) {
    SCOPED_TRACE(columns);
    const int64_t rows = 300, vocab = 77;
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < rows; ++i) tokens.push_back(i * i % 50);
    const auto table = Bfloat16s(Input::kSpecial, vocab * columns, 1);
    const auto dy = Bfloat16s(Input::kRandom, rows * columns, 2);
    auto gradient = Floats(Input::kRandom, vocab * columns, 3);
    std::vector<Bfloat16> y(dy.size());
    EmbeddingForward(rows, columns, vocab, tokens.data(), table.data(), y.data());
    const TokenGroups groups = GroupTokens(rows, tokens.data(), vocab);
    const auto count = static_cast<int64_t>(groups.tokens.size());
    const DeviceBuffer device_tokens(tokens), device_table(table), device_y(2 * rows * columns);
    const DeviceBuffer group_tokens(groups.tokens), starts(groups.starts);
    const DeviceBuffer positions(groups.positions), device_dy(dy), device_gradient(gradient);
    EmbeddingGroupsBackward(count, columns, groups.tokens.data(), groups.starts.data(),
                            groups.positions.data(), dy.data(), gradient.data());
    cuda::EmbeddingForward(rows, columns, device_tokens.get<int64_t>(),
                           device_table.get<Bfloat16>(), device_y.get<Bfloat16>(), nullptr);
    cuda::EmbeddingGroupsBackward(count, columns, group_tokens.get<int32_t>(),
                                  starts.get<int32_t>(), positions.get<int32_t>(),
                                  device_dy.get<Bfloat16>(), device_gradient.get<float>(), nullptr);
    Finish();
    ExpectNear(device_y.ToHost<Bfloat16>(), y, 0, 0);
    ExpectNear(device_gradient.ToHost<float>(), gradient, 0, 0);
  }
}

TEST(CrossEntropyTest, EqualsTheReference) {
  for (const int64_t vocab : {3, 512, 1001, 40000, 128256}) {
    for (const Input input : {Input::kRandom, Input::kZero, Input::kSubnormal, Input::kHuge}) {
      SCOPED_TRACE(vocab);
      const int64_t rows = 21;
      auto logits = Bfloat16s(input, rows * vocab, 1);
      std::vector<int64_t> labels;
      std::vector<float> mask;
      for (int64_t row = 0; row < rows; ++row) {
        labels.push_back(row % 5 == 2 ? -1 : row * 7 % vocab);
        mask.push_back(row % 5 == 2 ? 0.0f : row % 5 == 3 ? 0.5f : 1.0f);
      }
      const DeviceBuffer device(logits), device_labels(labels), device_mask(mask), losses(4 * rows);
      const DeviceBuffer sums(std::vector<double>{1, 2});
      cuda::CrossEntropy(rows, vocab, device.get<Bfloat16>(), device_labels.get<int64_t>(),
                         device_mask.get<float>(), false, losses.get<float>(), nullptr);
      const auto without = losses.ToHost<float>();
      ExpectNear(device.ToHost<Bfloat16>(), logits, 0, 0);
      cuda::CrossEntropy(rows, vocab, device.get<Bfloat16>(), device_labels.get<int64_t>(),
                         device_mask.get<float>(), true, losses.get<float>(), nullptr);
      cuda::AddLosses(rows, losses.get<float>(), device_mask.get<float>(), sums.get<double>(),
                      nullptr);
      Finish();
      const CrossEntropySum sum =
          CrossEntropy(rows, vocab, logits.data(), labels.data(), mask.data(), true);
      const auto device_sums = sums.ToHost<double>();
      EXPECT_NEAR(device_sums[0] - 1, sum.loss, 1e-5 * sum.loss);
      EXPECT_EQ(device_sums[1] - 2, sum.tokens);
      ExpectNear(losses.ToHost<float>(), without, 0, 0);
      ExpectNear(device.ToHost<Bfloat16>(), logits, kBf16Step, 1e-7f);
    }
  }
}

TEST(CrossEntropyTest, LogitsThatAreNotFiniteShowInTheLoss) {
  std::vector<Bfloat16> logits(64, Bfloat16(1.0f));
  logits[9] = Bfloat16(std::nanf(""));
  const DeviceBuffer device(logits), labels(std::vector<int64_t>{3}), mask(std::vector<float>{1});
  const DeviceBuffer losses(4);
  cuda::CrossEntropy(1, 64, device.get<Bfloat16>(), labels.get<int64_t>(), mask.get<float>(), true,
                     losses.get<float>(), nullptr);
  EXPECT_TRUE(std::isnan(losses.ToHost<float>()[0]));
}

TEST(AdamWBf16Test, EqualsTheReference) {
  for (const int64_t count : {1, 9, 4096, 5003}) {
    const auto grad = Floats(Input::kRandom, count, 1);
    auto master = Floats(Input::kRandom, count, 2), exp_avg = Floats(Input::kRandom, count, 3);
    auto exp_avg_sq = Floats(Input::kRandom, count, 4);
    for (float& v : exp_avg_sq) v = std::fabs(v);
    std::vector<Bfloat16> copy(grad.size());
    const DeviceBuffer device_grad(grad), device_master(master), device_exp_avg(exp_avg);
    const DeviceBuffer device_exp_avg_sq(exp_avg_sq), device_copy(2 * count), cast(2 * count);
    const float host_factors[2] = {0.5f, 0.25f};
    const DeviceBuffer factors(std::vector<float>{0.5f, 0.25f});
    AdamWRule rule{1e-2f, 0.1f, 0.9f, 0.95f, 1e-8f, 0.1f, 0.05f, host_factors, host_factors + 1};
    AdamWBf16(rule, count, grad.data(), master.data(), exp_avg.data(), exp_avg_sq.data(),
              copy.data());
    rule.clip = factors.get<float>();
    rule.inverse_tokens = factors.get<float>() + 1;
    cuda::AdamWBf16(rule, count, device_grad.get<float>(), device_master.get<float>(),
                    device_exp_avg.get<float>(), device_exp_avg_sq.get<float>(),
                    device_copy.get<Bfloat16>(), nullptr);
    cuda::CastToBf16(count, device_master.get<float>(), cast.get<Bfloat16>(), nullptr);
    Finish();
    ExpectNear(device_master.ToHost<float>(), master, 1e-5f, 1e-6f);
    ExpectNear(device_exp_avg.ToHost<float>(), exp_avg, 1e-5f, 1e-7f);
    ExpectNear(device_exp_avg_sq.ToHost<float>(), exp_avg_sq, 1e-5f, 1e-7f);
    ExpectNear(device_copy.ToHost<Bfloat16>(), copy, kBf16Step, 1e-6f);
    ExpectNear(cast.ToHost<Bfloat16>(), device_copy.ToHost<Bfloat16>(), 0, 0);
  }
}

TEST(InitialWeightsTest, AreTheHostsUpToTheLastBit) {
  const int64_t count = 100001, first = 12345678901;
  std::vector<float> expected(count);
  model::FillNormal(1234, "some.weight", 0.02, first, count, expected.data());
  const DeviceBuffer device(4 * count);
  cuda::FillInitial(model::InitialKey(1234, "some.weight"), 0.02, first, count, device.get<float>(),
                    nullptr);
  Finish();
  ExpectNear(device.ToHost<float>(), expected, 1.3e-7f, 1e-12f);
}

TEST(ElementwiseTest, FillsAndScales) {
  const DeviceBuffer device(4 * 1000);
  cuda::Fill(1000, 3, device.get<float>(), nullptr);
  cuda::Scale(999, 0.5f, device.get<float>(), nullptr);
  Finish();
  const auto values = device.ToHost<float>();
  EXPECT_EQ(values[0], 1.5f);
  EXPECT_EQ(values[998], 1.5f);
  EXPECT_EQ(values[999], 3.0f);
}

}  // namespace
}  // namespace muster::kernels
