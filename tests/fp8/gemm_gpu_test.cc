#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/device_buffer.h"
#include "tests/kernels/gpu_testing.h"
#include "trainer/fp8/cuda/gemms.h"
#include "trainer/fp8/cuda/linear_gemms.h"
#include "trainer/fp8/cuda/tuner.h"
#include "trainer/fp8/formats.h"
#include "trainer/kernels/cuda/fill_normal.h"

// cuBLASLt products against sums in double over the same operands.

namespace muster::fp8::cuda {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr uint8_t kE4m3Nan = 0x7f;
constexpr uint8_t kE5m2Infinity = 0x7c;

float ToFloat(ElementType type, const uint8_t* data, int64_t index) {
  switch (type) {
    case ElementType::kE4m3:
      return Decode(Format::kE4m3, data[index]);
    case ElementType::kE5m2:
      return Decode(Format::kE5m2, data[index]);
    case ElementType::kBf16: {
      Bfloat16 value;
      std::memcpy(&value, data + 2 * index, sizeof(value));
      return static_cast<float>(value);
    }
    case ElementType::kFp32:
      break;
  }
  float value = 0;
  std::memcpy(&value, data + 4 * index, sizeof(value));
  return value;
}

// Normal numbers; FP8 codes use the whole range, their scale_inv brings them back to deviation 1.
float FillOperand(ElementType type, const DeviceBuffer& buffer, uint64_t seed) {
  namespace kernels = muster::kernels::cuda;
  const int64_t count = buffer.bytes() / BytesOf(type);
  if (type == ElementType::kFp32) {
    kernels::FillNormal(buffer.get<float>(), count, 1, seed, nullptr);
    return 1;
  }
  if (type == ElementType::kBf16) {
    kernels::FillNormal(buffer.get<Bfloat16>(), count, 1, seed, nullptr);
    return 1;
  }
  const Format format = type == ElementType::kE4m3 ? Format::kE4m3 : Format::kE5m2;
  const float deviation = kernels::ScaledDeviation(format);
  kernels::FillNormal(buffer.get<uint8_t>(), format, count, deviation, seed, nullptr);
  return 1 / deviation;
}

// A product's operands on the device, and what it should give.
class Problem {
 public:
  explicit Problem(const GemmSpec& spec)
      : spec_(spec),
        left_(spec.m * spec.k * BytesOf(spec.left)),
        right_(spec.n * spec.k * BytesOf(spec.right)),
        out_(spec.m * spec.n * BytesOf(spec.out)),
        scales_(std::vector<float>{FillOperand(spec.left, left_, 11), 0, 0, 0,
                                   FillOperand(spec.right, right_, 12)}),
        workspace_(kGemmWorkspaceBytes) {
    // What a product adds to is about as large as the product; what it must overwrite is NaN.
    if (spec.accumulate) {
      FillOperand(spec.out, out_, 13);
    } else {
      out_.FillBytes(0xff);
    }
    before_ = out_.ToHost<uint8_t>();
    Reload();
  }

  void SetLeft(int64_t row, int64_t column, uint8_t code) {
    host_left_[static_cast<size_t>(row * spec_.k + column)] = code;
    MUSTER_CUDA_CHECK(
        cudaMemcpy(left_.get(), host_left_.data(), host_left_.size(), cudaMemcpyHostToDevice));
  }
  void ZeroLeft() {
    left_.FillBytes(0);
    Reload();
  }
  void ResetOut() {
    MUSTER_CUDA_CHECK(
        cudaMemcpy(out_.get(), before_.data(), before_.size(), cudaMemcpyHostToDevice));
  }

  GemmArguments Arguments() const {
    return {left_.get(), right_.get(), out_.get(), scales_.get<float>(), scales_.get<float>() + 4};
  }
  std::vector<uint8_t> Run(const GemmPlan& plan) {
    ResetOut();
    plan.Run(Arguments(), workspace_.get(), nullptr);
    return out_.ToHost<uint8_t>();
  }
  std::vector<uint8_t> Out() const { return out_.ToHost<uint8_t>(); }
  void* workspace() const { return workspace_.get(); }

  float OutAt(const std::vector<uint8_t>& out, int64_t row, int64_t column) const {
    return ToFloat(spec_.out, out.data(), row * spec_.n + column);
  }

  double Expected(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t k = 0; k < spec_.k; ++k) {
      const int64_t left = spec_.left_k_outer ? k * spec_.m + row : row * spec_.k + k;
      const int64_t right = spec_.right_k_outer ? k * spec_.n + column : column * spec_.k + k;
      sum += static_cast<double>(ToFloat(spec_.left, host_left_.data(), left)) *
             static_cast<double>(ToFloat(spec_.right, host_right_.data(), right));
    }
    if (IsFp8(spec_.left)) sum *= static_cast<double>(host_scales_[0]) * host_scales_[4];
    if (spec_.accumulate) sum += OutAt(before_, row, column);
    return sum;
  }

  // Over all elements, or over 4096 random ones of a large result.
  double Sqnr(const std::vector<uint8_t>& out) const {
    SqnrMeter meter;
    std::mt19937_64 engine(7);
    const int64_t count = std::min<int64_t>(spec_.m * spec_.n, 4096);
    const bool all = count == spec_.m * spec_.n;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at =
          all ? i : static_cast<int64_t>(engine() % static_cast<uint64_t>(spec_.m * spec_.n));
      meter.Add(OutAt(out, at / spec_.n, at % spec_.n), Expected(at / spec_.n, at % spec_.n));
    }
    return meter.Decibel();
  }

 private:
  void Reload() {
    host_left_ = left_.ToHost<uint8_t>();
    host_right_ = right_.ToHost<uint8_t>();
    host_scales_ = scales_.ToHost<float>();
  }

  GemmSpec spec_;
  DeviceBuffer left_, right_, out_, scales_, workspace_;
  std::vector<uint8_t> host_left_, host_right_, before_;
  std::vector<float> host_scales_;
};

const GemmPlan& Prepare(Gemms& gemms, const GemmSpec& spec) {
  const DeviceBuffer scratch(TuningBytes(spec));
  gemms.Prepare(std::span(&spec, 1), scratch.span(), nullptr);
  return gemms.Plan(spec);
}

std::vector<GemmSpec> AllOf(const LinearGemms& gemms) {
  return {gemms.forward, gemms.input_gradient, gemms.weight_gradient};
}

constexpr LinearShape kSmall{256, 384, 512};  // tokens, outputs, inputs

void ExpectExact(const GemmSpec& spec, double decibel) {
  SCOPED_TRACE(ToString(spec));
  Gemms gemms({.cache_file = "", .candidates = 4, .note = {}});
  const GemmPlan& plan = Prepare(gemms, spec);
  Problem problem(spec);
  const std::vector<uint8_t> out = problem.Run(plan);
  const double measured = problem.Sqnr(out);
  std::printf("  %-52s %6.1f dB\n", ToString(spec).c_str(), measured);
  EXPECT_GE(measured, decibel);
  EXPECT_EQ(problem.Run(plan), out) << "another run gives other bits";
}

TEST(GemmSmallTest, Fp8LinearMatchesSumsInDouble) {
  for (const Format gradient : {Format::kE5m2, Format::kE4m3}) {
    for (const ElementType main_gradient : {ElementType::kFp32, ElementType::kBf16}) {
      for (const GemmSpec& spec :
           AllOf(Fp8LinearGemms(kSmall, gradient, {.forward = false}, main_gradient))) {
        ExpectExact(spec, 50);
      }
    }
  }
}

TEST(GemmSmallTest, FastAccumulationIsClose) {
  for (const GemmSpec& spec :
       AllOf(Fp8LinearGemms(kSmall, Format::kE5m2,
                            {.forward = true, .input_gradient = true, .weight_gradient = true},
                            ElementType::kFp32))) {
    ExpectExact(spec, 25);
  }
}

TEST(GemmSmallTest, Bf16LinearMatchesSumsInDouble) {
  for (const ElementType main_gradient : {ElementType::kFp32, ElementType::kBf16}) {
    for (const GemmSpec& spec : AllOf(Bf16LinearGemms(kSmall, main_gradient))) {
      ExpectExact(spec, 50);
    }
  }
}

TEST(GemmSmallTest, ZeroOperandGivesExactZeroOverGarbage) {
  const GemmSpec spec = Fp8LinearGemms(kSmall, Format::kE5m2, {}, ElementType::kFp32).forward;
  Gemms gemms({.cache_file = "", .candidates = 1, .note = {}});
  Problem problem(spec);
  problem.ZeroLeft();
  EXPECT_THAT(problem.Run(Prepare(gemms, spec)), Each(0));
}

TEST(GemmSmallTest, NanAndInfinityStayInTheirRow) {
  Gemms gemms({.cache_file = "", .candidates = 1, .note = {}});
  const LinearGemms linear = Fp8LinearGemms(kSmall, Format::kE5m2, {}, ElementType::kFp32);
  for (const auto& [spec, code] :
       {std::pair(linear.forward, kE4m3Nan), std::pair(linear.input_gradient, kE5m2Infinity)}) {
    SCOPED_TRACE(ToString(spec));
    Problem problem(spec);
    problem.SetLeft(3, 5, code);
    const std::vector<uint8_t> out = problem.Run(Prepare(gemms, spec));
    for (int64_t row = 0; row < spec.m; ++row) {
      for (int64_t column = 0; column < spec.n; ++column) {
        const float expected = static_cast<float>(problem.Expected(row, column));
        const float actual = problem.OutAt(out, row, column);
        ASSERT_EQ(std::isnan(actual), std::isnan(expected)) << row << ", " << column;
        ASSERT_EQ(std::isinf(actual), std::isinf(expected)) << row << ", " << column;
      }
    }
  }
}

// The addend is a residual stream: it stays as it is.
TEST(GemmSmallTest, AddsToAnotherMatrix) {
  for (LinearGemms gemms :
       {Fp8LinearGemms(kSmall, Format::kE5m2, {.forward = false}, ElementType::kFp32),
        Bf16LinearGemms(kSmall, ElementType::kFp32)}) {
    gemms.forward.accumulate = true;
    Gemms plans({.cache_file = "", .candidates = 4, .note = {}});
    const GemmPlan& plan = Prepare(plans, gemms.forward);
    Problem problem(gemms.forward);
    problem.ResetOut();
    const std::vector<uint8_t> before = problem.Out();
    const DeviceBuffer addend(before);
    GemmArguments arguments = problem.Arguments();
    arguments.addend = addend.get();
    MUSTER_CUDA_CHECK(cudaMemset(arguments.out, 0xff, before.size()));
    plan.Run(arguments, problem.workspace(), nullptr);
    const double measured = problem.Sqnr(problem.Out());
    std::printf("  %-52s %6.1f dB, to another matrix\n", ToString(gemms.forward).c_str(), measured);
    EXPECT_GE(measured, 50);
    EXPECT_EQ(addend.ToHost<uint8_t>(), before);
  }
}

TEST(GemmSmallTest, GraphEqualsDirectRun) {
  Gemms gemms({.cache_file = "", .candidates = 1, .note = {}});
  for (const GemmSpec& spec :
       AllOf(Fp8LinearGemms(kSmall, Format::kE5m2, {}, ElementType::kFp32))) {
    const GemmPlan& plan = Prepare(gemms, spec);
    Problem problem(spec);
    const std::vector<uint8_t> direct = problem.Run(plan);
    problem.ResetOut();
    RunAsGraph(
        [&](cudaStream_t stream) { plan.Run(problem.Arguments(), problem.workspace(), stream); });
    EXPECT_EQ(problem.Out(), direct) << ToString(spec);
  }
}

TEST(GemmSmallTest, ErrorsNameTheProduct) {
  Gemms gemms({.cache_file = "", .candidates = 1, .note = {}});
  const GemmSpec odd{64, 64, 24, ElementType::kE4m3, ElementType::kE4m3, ElementType::kBf16};
  EXPECT_THAT([&] { gemms.Prepare(std::span(&odd, 1), {}, nullptr); },
              ThrowsMessage<CudaError>(HasSubstr("64x64x24 e4m3*e4m3>bf16")));
  EXPECT_THAT([&] { gemms.Plan(odd); }, ThrowsMessage<CudaError>(HasSubstr("was not prepared")));

  const GemmSpec spec = Fp8LinearGemms(kSmall, Format::kE5m2, {}, ElementType::kFp32).forward;
  const GemmPlan& plan = Prepare(gemms, spec);
  Problem problem(spec);
  GemmArguments arguments = problem.Arguments();
  arguments.left = static_cast<const uint8_t*>(arguments.left) + 16;
  EXPECT_THAT([&] { plan.Run(arguments, problem.workspace(), nullptr); },
              ThrowsMessage<CudaError>(HasSubstr("256x384x512")));

  arguments = problem.Arguments();
  arguments.left_scale_inv += 1;
  EXPECT_THAT([&] { plan.Run(arguments, problem.workspace(), nullptr); },
              ThrowsMessage<CudaError>(HasSubstr("aligned to 16 bytes")));

  Gemms tuning({.cache_file = "", .candidates = 4, .note = {}});
  EXPECT_THAT([&] { tuning.Prepare(std::span(&spec, 1), {}, nullptr); },
              ThrowsMessage<CudaError>(HasSubstr("of scratch")));
}

// The shapes and options of the 8B model, with tuned algorithms.
TEST(GemmFullTest, EightBillionShapes) {
  for (const LinearShape& shape :
       {LinearShape{8192, 6144, 4096}, LinearShape{8192, 4096, 4096},
        LinearShape{8192, 28672, 4096}, LinearShape{8192, 4096, 14336}}) {
    for (const GemmSpec& spec :
         AllOf(Fp8LinearGemms(shape, Format::kE5m2, {.forward = false}, ElementType::kFp32))) {
      ExpectExact(spec, 50);
    }
    ExpectExact(Fp8LinearGemms(shape, Format::kE5m2, {}, ElementType::kFp32).forward, 25);
  }
}

class GemmCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("gemm_cache." + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Tunes the spec with the cache file; gives the notes.
  std::vector<std::string> TuneOnce() {
    std::vector<std::string> notes;
    Gemms gemms({.cache_file = File(), .candidates = 8, .note = [&notes](const std::string& note) {
                   notes.push_back(note);
                 }});
    Problem problem(spec_);
    EXPECT_GE(problem.Sqnr(problem.Run(Prepare(gemms, spec_))), 50);
    return notes;
  }

  std::filesystem::path File() const { return folder_ / "gemms.txt"; }

  const GemmSpec spec_ =
      Fp8LinearGemms(kSmall, Format::kE5m2, {.forward = false}, ElementType::kFp32).forward;
  std::filesystem::path folder_;
};

TEST_F(GemmCacheTest, SecondRunTunesNothing) {
  EXPECT_EQ(TuneOnce().size(), 1u);
  EXPECT_EQ(TuneOnce().size(), 0u);
}

TEST_F(GemmCacheTest, AlgorithmThatCannotRunIsTunedAgain) {
  cudaDeviceProp properties;
  MUSTER_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  TuningCache cache(File(), properties.name, "cublasLt " + std::to_string(cublasLtGetVersion()),
                    {});
  cache.Add(ToString(spec_), GemmAlgorithm{{0xffff}}, 1);
  cache.Save();
  EXPECT_THAT(TuneOnce(), ElementsAre(HasSubstr("can't run here"), HasSubstr("TFLOP/s")));
  EXPECT_EQ(TuneOnce().size(), 0u);
}

}  // namespace
}  // namespace muster::fp8::cuda

int main(int argc, char** argv) {
  return muster::RunGpuTests(argc, argv);
}
