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
#include "trainer/kernels/cuda/residual_rmsnorm_fp8.h"
#include "trainer/kernels/cuda/rmsnorm_backward.h"
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

// Each element equal to the reference's within `relative` of it and `absolute`; NaN as a class.
template <typename T>
void ExpectNear(const std::vector<T>& actual, const std::vector<T>& expected, float relative,
                float absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const float a = static_cast<float>(actual[i]), e = static_cast<float>(expected[i]);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_LE(std::fabs(a - e), absolute + relative * std::fabs(e)) << "element " << i;
  }
}

void CompareNorm(const Size& size, Input input, Format format, bool with_residual) {
  const int64_t count = size.rows * size.columns;
  const RmsNormShape shape{size.rows, size.columns, 1e-5, with_residual ? 1.0 : 0.0};
  const auto x = Bfloat16s(input, count, 1), residual = Bfloat16s(input, count, 2);
  const auto weight = Bfloat16s(Input::kRandom, size.columns, 3);
  std::vector<Bfloat16> sum(x.size());
  std::vector<float> rstd(static_cast<size_t>(size.rows));
  Fp8Results y(size.rows, size.columns, format, 41.5f);
  ResidualRmsNormFp8(shape, x.data(), with_residual ? residual.data() : nullptr, weight.data(),
                     sum.data(), rstd.data(), y.Host());

  const DeviceBuffer device_x(x), device_residual(residual), device_weight(weight);
  const DeviceBuffer device_sum(std::vector<Bfloat16>(x.size(), Bfloat16(7)));
  const DeviceBuffer device_rstd(std::vector<float>(rstd.size(), 7));
  cuda::ResidualRmsNormFp8(shape, device_x.get<Bfloat16>(),
                           with_residual ? device_residual.get<Bfloat16>() : nullptr,
                           device_weight.get<Bfloat16>(), device_sum.get<Bfloat16>(),
                           device_rstd.get<float>(), y.Device(), nullptr);
  Finish();
  y.ExpectSame();
  ExpectNear(device_sum.ToHost<Bfloat16>(), sum, 0, 0);
  ExpectNear(device_rstd.ToHost<float>(), rstd, 3e-6f, 0);
}

TEST(ResidualRmsNormFp8Test, EqualsTheReference) {
  for (const Input input : kInputs) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareNorm(size, input, Format::kE4m3, true);
      CompareNorm(size, input, Format::kE5m2, false);
    }
  }
}

TEST(ResidualRmsNormFp8Test, TakesRowsOfModels) {
  for (const int64_t columns : {2048, 3000, 4096, 5120, 8192, 12288, 25600}) {
    SCOPED_TRACE(columns);
    CompareNorm({65, columns}, Input::kRandom, Format::kE4m3, true);
    CompareNorm({64, columns}, Input::kSpecial, Format::kE4m3, true);
  }
  Fp8Results y(1, 1, Format::kE4m3, 1);
  EXPECT_THROW(cuda::ResidualRmsNormFp8({1, 25601, 1e-5, 0}, nullptr, nullptr, nullptr, nullptr,
                                        nullptr, y.Device(), nullptr),
               std::invalid_argument);
}

void CompareNormBackward(const Size& size, Input input) {
  const int64_t count = size.rows * size.columns;
  const RmsNormShape shape{size.rows, size.columns, 1e-5, 1.0};
  const auto dy = Bfloat16s(input, count, 7), x = Bfloat16s(input, count, 8);
  const auto weight = Bfloat16s(Input::kRandom, size.columns, 9);
  const auto rstd = Floats(Input::kRandom, size.rows, 10);
  auto dx = Bfloat16s(input, count, 11);
  auto dweight = Floats(Input::kRandom, size.columns, 12);
  const DeviceBuffer device_dy(dy), device_x(x), device_weight(weight), device_rstd(rstd);
  const DeviceBuffer workspace(4 * cuda::RmsNormBackwardWorkspace(size.columns));
  std::vector<float> first;
  for (int run = 0; run < 2; ++run) {
    const DeviceBuffer device_dx(dx), device_dweight(dweight);
    cuda::RmsNormBackward(shape, device_dy.get<Bfloat16>(), device_x.get<Bfloat16>(),
                          device_weight.get<Bfloat16>(), device_rstd.get<float>(),
                          device_dx.get<Bfloat16>(), device_dweight.get<float>(),
                          workspace.get<float>(), nullptr);
    Finish();
    if (run == 0) {
      first = device_dweight.ToHost<float>();
      continue;
    }
    ExpectNear(device_dweight.ToHost<float>(), first, 0, 0);  // deterministic
    RmsNormBackward(shape, dy.data(), x.data(), weight.data(), rstd.data(), dx.data(),
                    dweight.data());
    ExpectNear(device_dx.ToHost<Bfloat16>(), dx, 8e-3f, 1e-4f);
    ExpectNear(first, dweight, 1e-4f, 1e-4f);
  }
}

TEST(RmsNormBackwardTest, EqualsTheReferenceAndItself) {
  for (const Input input : {Input::kRandom, Input::kZero, Input::kSpecial, Input::kSubnormal}) {
    for (const Size& size : kSizes) {
      SCOPED_TRACE(Describe(size, input));
      CompareNormBackward(size, input);
    }
  }
  for (const int64_t columns : {4096, 5120, 8192, 12288, 16384}) {
    SCOPED_TRACE(columns);
    CompareNormBackward({600, columns}, Input::kRandom);
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
  SwigluBackwardFp8(size.rows, size.columns, dy.data(), gate_up.data(), dgate_up.Host());
  const DeviceBuffer device_dy(dy), device_gate_up(gate_up);
  cuda::SwigluBackwardFp8(size.rows, size.columns, device_dy.get<Bfloat16>(),
                          device_gate_up.get<Bfloat16>(), dgate_up.Device(), nullptr);
  Finish();
  dgate_up.ExpectSame();
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

}  // namespace
}  // namespace muster::kernels

int main(int argc, char** argv) {
  return muster::RunGpuTests(argc, argv);
}
