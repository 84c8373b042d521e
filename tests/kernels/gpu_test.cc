#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "trainer/fp8/formats.h"
#include "trainer/fp8/scaling.h"
#include "trainer/kernels/cuda/delayed_scaling.h"
#include "trainer/kernels/cuda/fp8_cast.h"
#include "trainer/kernels/fp8_cast.h"

// The CUDA kernels against the CPU reference, byte for byte (NaN codes as a class). Skipped (exit
// status 77) where there is no device. No LibTorch: this program can be copied to a GPU machine as
// it is.

namespace muster::kernels {
namespace {

using fp8::Format;

void Check(cudaError_t error) {
  ASSERT_EQ(error, cudaSuccess) << cudaGetErrorString(error);
}

// An array on the device, filled from the host.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    Check(cudaMalloc(reinterpret_cast<void**>(&data_), std::max<size_t>(count_, 1) * sizeof(T)));
    Check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  explicit DeviceArray(size_t count) : DeviceArray(std::vector<T>(count)) {}
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() { return data_; }
  std::vector<T> ToHost() const {
    std::vector<T> values(count_);
    Check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

enum class Input { kRandom, kZero, kSpecial, kHuge, kSubnormal };

std::vector<float> MakeInput(Input input, size_t count) {
  std::mt19937 engine(static_cast<uint32_t>(count));
  std::normal_distribution<float> normal;
  const float infinity = std::numeric_limits<float>::infinity();
  const float specials[] = {infinity, -infinity, std::nanf(""), -std::nanf(""),
                            0.0f,     -0.0f,     448.0f,        464.0f,
                            57344.0f, 61440.0f,  1e-9f,         std::numeric_limits<float>::max()};
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    switch (input) {
      case Input::kRandom:
        values[i] = normal(engine);
        break;
      case Input::kZero:
        values[i] = 0;
        break;
      case Input::kSpecial:
        values[i] = i % 3 == 0 ? specials[i / 3 % std::size(specials)] : normal(engine);
        break;
      case Input::kHuge:
        values[i] = normal(engine) * 1e30f;
        break;
      case Input::kSubnormal:
        values[i] = normal(engine) * 1e-39f;
        break;
    }
  }
  return values;
}

void ExpectSameCodes(const std::vector<uint8_t>& actual, const std::vector<uint8_t>& expected,
                     Format format) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    ASSERT_TRUE(std::isnan(fp8::Decode(format, actual[i])) &&
                std::isnan(fp8::Decode(format, expected[i])))
        << "element " << i << ": " << int{actual[i]} << " instead of " << int{expected[i]};
  }
}

template <typename T>
void CompareCast(int64_t rows, int64_t columns, Input input, Format format, float scale) {
  const size_t count = static_cast<size_t>(rows * columns);
  std::vector<T> x;
  for (const float value : MakeInput(input, count)) x.push_back(T(value));
  std::vector<uint8_t> expected(count);
  CastToFp8<T>(rows * columns, x.data(), scale, format, expected.data(), nullptr);
  std::vector<uint8_t> expected_transposed(count);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      expected_transposed[static_cast<size_t>(c * rows + r)] =
          expected[static_cast<size_t>(r * columns + c)];
    }
  }
  DeviceArray<T> device_x(x);
  DeviceArray<float> device_scale(std::vector<float>{scale}), scale_inv(1), amax(1);
  DeviceArray<uint8_t> codes(count), transposed(count), codes_alone(count);
  cuda::CastToFp8(device_x.get(), rows, columns, device_scale.get(), format, codes.get(),
                  transposed.get(), scale_inv.get(), amax.get(), nullptr);
  cuda::CastToFp8<T>(device_x.get(), rows, columns, device_scale.get(), format, codes_alone.get(),
                     nullptr, scale_inv.get(), nullptr, nullptr);
  Check(cudaGetLastError());
  ExpectSameCodes(codes.ToHost(), expected, format);
  ExpectSameCodes(codes_alone.ToHost(), expected, format);
  ExpectSameCodes(transposed.ToHost(), expected_transposed, format);
  EXPECT_EQ(scale_inv.ToHost()[0], fp8::ScaleInverse(scale));
  EXPECT_EQ(amax.ToHost()[0], Amax(rows * columns, x.data()));
}

class GpuCastTest : public ::testing::TestWithParam<std::tuple<Input, Format>> {};

TEST_P(GpuCastTest, EqualsTheReference) {
  const auto [input, format] = GetParam();
  const int64_t shapes[][2] = {{64, 64},  {1, 1},    {3, 5},    {128, 192},
                               {200, 72}, {65, 130}, {1024, 33}};
  for (const auto& [rows, columns] : shapes) {
    for (const float scale : {1.0f, 117.3f, 3e-3f, std::numeric_limits<float>::max()}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(columns));
      CompareCast<float>(rows, columns, input, format, scale);
      CompareCast<Bfloat16>(rows, columns, input, format, scale);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuCastTest,
                         ::testing::Combine(::testing::Values(Input::kRandom, Input::kZero,
                                                              Input::kSpecial, Input::kHuge,
                                                              Input::kSubnormal),
                                            ::testing::Values(Format::kE4m3, Format::kE5m2)));

bool SameFloat(float a, float b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// Scripts of random amaxes, with zeros, infinities, NaN and tiny values, over many updates.
TEST(GpuDelayedScalingTest, EveryUpdateEqualsTheReference) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int64_t history_len : {1, 2, 4, 16, 129, 300, 1024}) {
    for (const config::AmaxAlgo algo : {config::AmaxAlgo::kMax, config::AmaxAlgo::kMostRecent}) {
      const fp8::DelayedRule rule{history_len, algo, 1, Format::kE4m3};
      const size_t count = 37;
      std::mt19937 engine(static_cast<uint32_t>(history_len));
      std::vector<float> scale(count, 1), history(count * static_cast<size_t>(history_len));
      DeviceArray<float> device_scale(scale), device_history(history);
      for (int step = 0; step < 40; ++step) {
        std::vector<float> amax(count);
        for (float& value : amax) {
          const uint32_t kind = engine() % 16;
          value = static_cast<float>(engine() % 1000) / 16;
          if (kind == 0) value = 0;
          if (kind == 1) value = infinity;
          if (kind == 2) value = std::nanf("");
          if (kind == 3) value = 1e-40f;
        }
        DeviceArray<float> device_amax(amax);
        fp8::UpdateDelayed(rule, static_cast<int64_t>(count), amax.data(), scale.data(),
                           history.data());
        cuda::UpdateDelayed(rule, static_cast<int64_t>(count), device_amax.get(),
                            device_scale.get(), device_history.get(), nullptr);
        Check(cudaGetLastError());
        const std::vector<float> scale_now = device_scale.ToHost();
        const std::vector<float> history_now = device_history.ToHost();
        for (size_t i = 0; i < count; ++i) ASSERT_TRUE(SameFloat(scale_now[i], scale[i])) << i;
        for (size_t i = 0; i < history.size(); ++i) {
          ASSERT_TRUE(SameFloat(history_now[i], history[i])) << "row " << i / count;
        }
      }
    }
  }
}

}  // namespace
}  // namespace muster::kernels

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("no CUDA device: skipped");
    return 77;
  }
  return RUN_ALL_TESTS();
}
