#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernels/device_buffer.h"
#include "tests/kernels/fp8_result.h"
#include "tests/kernels/gpu_testing.h"
#include "tests/kernels/kernel_inputs.h"
#include "trainer/kernels/cpu/fp8_store.h"
#include "trainer/kernels/cuda/adamw_fp8.h"
#include "trainer/kernels/cuda/rmsnorm_backward.h"
#include "trainer/kernels/cuda/rmsnorm_fp8.h"
#include "trainer/kernels/cuda/swiglu_fp8.h"

// The fused CUDA kernels against their CPU references, on all kinds of input and ragged sizes.
// Skipped (exit status 77) where there is no device.

namespace muster::kernels {
namespace {

using fp8::Format;

struct Size {
  int64_t rows, columns;
};
constexpr Size kSizes[] = {{128, 128}, {1, 1},   {3, 5},     {200, 72},  {65, 130},
                           {33, 1024}, {7, 264}, {40, 1088}, {256, 512}, {130, 1025}};

std::string Describe(const Size& size, Input input) {
  return std::to_string(size.rows) + " x " + std::to_string(size.columns) + ", input " +
         std::to_string(static_cast<int>(input));
}

void Finish() {
  MUSTER_CUDA_CHECK(cudaGetLastError());
  MUSTER_CUDA_CHECK(cudaDeviceSynchronize());
}

// Each element equal to the reference's within `relative` of it and `absolute`. NaN is a class;
// with a tolerance, where fused multiply-adds may overflow elsewhere, all that is not finite.
template <typename T>
void ExpectNear(const std::vector<T>& actual, const std::vector<T>& expected, float relative,
                float absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const float a = static_cast<float>(actual[i]), e = static_cast<float>(expected[i]);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    if (relative > 0 && !std::isfinite(a) && !std::isfinite(e)) continue;
    ASSERT_LE(std::fabs(a - e), absolute + relative * std::fabs(e)) << "element " << i;
  }
}

void CompareNorm(const Size& size, Input input, Format format, double offset) {
  const RmsNormShape shape{size.rows, size.columns, 1e-5, offset};
  const auto x = Bfloat16s(input, size.rows * size.columns, 1);
  const auto weight = Bfloat16s(Input::kRandom, size.columns, 3);
  std::vector<float> rstd(static_cast<size_t>(size.rows));
  Fp8Results y(size.rows, size.columns, format, 41.5f);
  RmsNormFp8(shape, x.data(), weight.data(), rstd.data(), y.Host());

  const DeviceBuffer device_x(x), device_weight(weight);
  const DeviceBuffer device_rstd(std::vector<float>(rstd.size(), 7));
  cuda::RmsNormFp8(shape, device_x.get<Bfloat16>(), device_weight.get<Bfloat16>(),
                   device_rstd.get<float>(), y.Device(), nullptr);
  Finish();
  y.ExpectSame();
  ExpectNear(device_rstd.ToHost<float>(), rstd, 3e-6f, 0);
}

TEST(RmsNormFp8Test, EqualsTheReference) {
  for (const Input input : kInputs) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareNorm(size, input, Format::kE4m3, 1);
      CompareNorm(size, input, Format::kE5m2, 0);
    }
  }
}

// Of all sizes of a cluster, and what no cluster holds.
constexpr int64_t kModelColumns[] = {2048, 3000, 3072, 4096, 5120, 8192, 12288, 16384};

TEST(RmsNormFp8Test, TakesRowsOfModels) {
  for (const int64_t columns : kModelColumns) {
    SCOPED_TRACE(columns);
    CompareNorm({65, columns}, Input::kRandom, Format::kE4m3, 1);
    CompareNorm({128, columns}, Input::kSpecial, Format::kE4m3, 1);
    CompareNorm({96, columns}, Input::kSubnormal, Format::kE5m2, 0);
  }
}

struct NormGradient {
  std::vector<Bfloat16> dx;
  std::vector<float> dweight;
};

// `run` on the device, twice: dweight must be the same. And the reference's.
template <typename Run, typename Reference>
void CompareNormGradient(const NormGradient& before, const Run& run, const Reference& reference) {
  NormGradient expected = before;
  std::vector<float> first;
  for (int time = 0; time < 2; ++time) {
    const DeviceBuffer dx(before.dx), dweight(before.dweight);
    run(dx.get<Bfloat16>(), dweight.get<float>());
    Finish();
    if (time == 0) {
      first = dweight.ToHost<float>();
      continue;
    }
    ExpectNear(dweight.ToHost<float>(), first, 0, 0);  // deterministic
    reference(expected.dx.data(), expected.dweight.data());
    ExpectNear(dx.ToHost<Bfloat16>(), expected.dx, 8e-3f, 1e-4f);
    ExpectNear(first, expected.dweight, 1e-4f, 1e-4f);
  }
}

void CompareNormBackward(const Size& size, Input input) {
  const int64_t count = size.rows * size.columns;
  const RmsNormShape shape{size.rows, size.columns, 1e-5, 1.0};
  const auto dy = Bfloat16s(input, count, 7), x = Bfloat16s(input, count, 8);
  const auto weight = Bfloat16s(Input::kRandom, size.columns, 9);
  const auto rstd = Floats(Input::kRandom, size.rows, 10);
  const NormGradient before{Bfloat16s(input, count, 11), Floats(Input::kRandom, size.columns, 12)};
  const DeviceBuffer device_dy(dy), device_x(x), device_weight(weight), device_rstd(rstd);
  const DeviceBuffer workspace(4 * cuda::RmsNormBackwardFp8Workspace(size.rows, size.columns));
  const auto reference = [&](Bfloat16* dx, float* dweight) {
    RmsNormBackward(shape, dy.data(), x.data(), weight.data(), rstd.data(), dx, dweight);
  };
  CompareNormGradient(
      before,
      [&](Bfloat16* dx, float* dweight) {
        cuda::RmsNormBackward(shape, device_dy.get<Bfloat16>(), device_x.get<Bfloat16>(),
                              device_weight.get<Bfloat16>(), device_rstd.get<float>(), dx, dweight,
                              workspace.get<float>(), nullptr);
      },
      reference);

  Fp8Results fp8(size.rows, size.columns, Format::kE5m2, 23.5f);
  std::vector<Bfloat16> device_dx;
  CompareNormGradient(
      before,
      [&](Bfloat16* dx, float* dweight) {
        cuda::RmsNormBackwardFp8(shape, device_dy.get<Bfloat16>(), device_x.get<Bfloat16>(),
                                 device_weight.get<Bfloat16>(), device_rstd.get<float>(), dx,
                                 dweight, fp8.Device(), workspace.get<float>(), nullptr);
        device_dx.resize(static_cast<size_t>(count));
        MUSTER_CUDA_CHECK(cudaMemcpy(device_dx.data(), dx, device_dx.size() * sizeof(Bfloat16),
                                     cudaMemcpyDeviceToHost));
      },
      reference);
  // The codes are those of the dx that the kernel itself rounded.
  const Fp8Output host = fp8.Host();
  const Fp8Store store(host, size.rows, size.columns);
  for (int64_t i = 0; i < count; ++i) {
    store.Put(i / size.columns, i % size.columns,
              static_cast<float>(device_dx[static_cast<size_t>(i)]));
  }
  fp8.ExpectSame(0);
}

TEST(RmsNormBackwardTest, EqualsTheReferenceAndItself) {
  for (const Input input : kInputs) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareNormBackward(size, input);
    }
  }
  for (const int64_t columns : kModelColumns) {
    SCOPED_TRACE(columns);
    CompareNormBackward({576, columns}, Input::kRandom);
    CompareNormBackward({320, columns}, Input::kSpecial);
  }
}

void CompareSwigluForward(const Size& size, Input input, Format format, float scale) {
  const auto gate_up = Bfloat16s(input, 2 * size.rows * size.columns, 4);
  Fp8Results y(size.rows, size.columns, format, scale);
  SwigluForwardFp8(size.rows, size.columns, gate_up.data(), y.Host());
  const DeviceBuffer device_gate_up(gate_up);
  cuda::SwigluForwardFp8(size.rows, size.columns, device_gate_up.get<Bfloat16>(), y.Device(),
                         nullptr);
  Finish();
  y.ExpectSame();
}

void CompareSwigluBackward(const Size& size, Input input, Format format, float scale) {
  const int64_t count = size.rows * size.columns;
  const auto dy = Bfloat16s(input, count, 5), gate_up = Bfloat16s(input, 2 * count, 6);
  Fp8Results dgate_up(size.rows, 2 * size.columns, format, scale);
  Fp8Results again(size.rows, size.columns, Format::kE4m3, 37.25f);
  const auto codes_alone = [](Fp8Output out) {
    out.scale_inv = out.amax = nullptr;
    return out;
  };
  SwigluBackwardFp8(size.rows, size.columns, dy.data(), gate_up.data(), dgate_up.Host(),
                    codes_alone(again.Host()));
  const DeviceBuffer device_dy(dy), device_gate_up(gate_up);
  cuda::SwigluBackwardFp8(size.rows, size.columns, device_dy.get<Bfloat16>(),
                          device_gate_up.get<Bfloat16>(), dgate_up.Device(),
                          codes_alone(again.Device()), nullptr);
  Finish();
  dgate_up.ExpectSame();
  again.ExpectSame();
}

TEST(SwigluFp8Test, EqualsTheReference) {
  for (const Input input : kInputs) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareSwigluForward(size, input, Format::kE4m3, 37.25f);
      CompareSwigluForward(size, input, Format::kE5m2, 1e-3f);
      CompareSwigluBackward(size, input, Format::kE5m2, 5117.0f);
      CompareSwigluBackward(size, input, Format::kE4m3, 3e-2f);
    }
  }
}

template <typename T>
std::vector<T> Values(Input input, int64_t count, uint32_t seed, bool positive = false) {
  std::vector<T> values;
  for (const float x : Floats(input, count, seed)) {
    values.push_back(T(positive ? std::fabs(x) : x));
  }
  return values;
}

template <typename G, typename M>
void CompareAdamW(const Size& size, Input input, Format format) {
  const int64_t count = size.rows * size.columns;
  const auto grad = Values<G>(input, count, 13);
  auto master = Values<float>(Input::kRandom, count, 14);
  auto exp_avg = Values<M>(Input::kRandom, count, 15);
  auto exp_avg_sq = Values<M>(input, count, 16, true);
  const std::vector<float> factors = {0.75f, 0.01f};
  AdamWRule rule{1e-2f, 0.1f, 0.9f, 0.95f, 1e-8f, 0.19f, 0.0975f, &factors[0], &factors[1]};

  const DeviceBuffer device_grad(grad), device_master(master), device_exp_avg(exp_avg);
  const DeviceBuffer device_exp_avg_sq(exp_avg_sq), device_factors(factors);
  Fp8Results weight(size.rows, size.columns, format, 73.0f);
  AdamWFp8(rule, size.rows, size.columns, grad.data(), master.data(), exp_avg.data(),
           exp_avg_sq.data(), weight.Host());
  rule.clip = device_factors.get<float>();
  rule.inverse_tokens = rule.clip + 1;
  cuda::AdamWFp8(rule, size.rows, size.columns, device_grad.get<G>(), device_master.get<float>(),
                 device_exp_avg.get<M>(), device_exp_avg_sq.get<M>(), weight.Device(), nullptr);
  Finish();
  weight.ExpectSame();
  const float moment_step = sizeof(M) == 2 ? 8e-3f : 1e-5f;
  ExpectNear(device_master.ToHost<float>(), master, 1e-5f, 1e-6f);
  ExpectNear(device_exp_avg.ToHost<M>(), exp_avg, moment_step, 1e-6f);
  ExpectNear(device_exp_avg_sq.ToHost<M>(), exp_avg_sq, moment_step, 1e-6f);
}

TEST(AdamWFp8Test, EqualsTheReference) {
  for (const Input input : kInputs) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareAdamW<float, Bfloat16>(size, input, Format::kE4m3);
      CompareAdamW<float, float>(size, input, Format::kE4m3);
      CompareAdamW<Bfloat16, Bfloat16>(size, input, Format::kE5m2);
      CompareAdamW<Bfloat16, float>(size, input, Format::kE4m3);
    }
  }
}

template <typename G>
void CompareSquares(int64_t count, Input input) {
  const auto grad = Values<G>(input, count, 17);
  double expected = 3;
  AddSquares(count, grad.data(), &expected);
  const DeviceBuffer device_grad(grad), workspace(8 * cuda::AddSquaresWorkspace());
  std::vector<double> sums;
  for (int run = 0; run < 2; ++run) {
    const DeviceBuffer sum(std::vector<double>{3});
    cuda::AddSquares(count, device_grad.get<G>(), sum.get<double>(), workspace.get<double>(),
                     nullptr);
    Finish();
    sums.push_back(sum.ToHost<double>()[0]);
  }
  if (std::isfinite(expected)) {
    EXPECT_EQ(sums[0], sums[1]);  // deterministic
    EXPECT_NEAR(sums[0], expected, 1e-12 * expected);
  } else {
    EXPECT_EQ(std::isnan(sums[0]), std::isnan(expected));
  }
}

TEST(AddSquaresTest, EqualsTheReferenceAndItself) {
  for (const Input input : kInputs) {
    for (const int64_t count : {0, 1, 7, 8, 1003, 300000, 3000001}) {
      SCOPED_TRACE(Describe({1, count}, input));
      CompareSquares<float>(count, input);
      CompareSquares<Bfloat16>(count, input);
    }
  }
}

}  // namespace
}  // namespace muster::kernels

int main(int argc, char** argv) {
  return muster::RunGpuTests(argc, argv);
}
