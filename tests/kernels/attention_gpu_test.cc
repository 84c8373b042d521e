#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/attention_reference.h"
#include "tests/kernels/device_buffer.h"
#include "tests/kernels/gpu_testing.h"
#include "trainer/kernels/cuda/attention.h"
#include "trainer/kernels/cuda/fill_normal.h"

// cuDNN's attention against sums in double over the same bf16 inputs.

namespace muster::kernels::cuda {
namespace {

std::vector<double> ToDouble(const DeviceBuffer& buffer) {
  std::vector<double> values;
  for (const Bfloat16 value : buffer.ToHost<Bfloat16>()) {
    values.push_back(static_cast<double>(static_cast<float>(value)));
  }
  return values;
}

// One call's tensors on the device.
class Problem {
 public:
  explicit Problem(const AttentionSpec& spec)
      : spec_(spec),
        qkv_(Rows() * spec.RowElements() * 2),
        dqkv_(qkv_.bytes()),
        out_(Rows() * Width() * 2),
        dout_(out_.bytes()),
        logsumexp_(Rows() * spec.heads * 4) {
    FillNormal(qkv_.get<Bfloat16>(), Rows() * spec.RowElements(), 1, 21, nullptr);
    FillNormal(dout_.get<Bfloat16>(), Rows() * Width(), 1, 22, nullptr);
    Poison();
  }

  // Results are NaN until they are written.
  void Poison() {
    dqkv_.FillBytes(0xff);
    out_.FillBytes(0xff);
    logsumexp_.FillBytes(0xff);
  }
  void Forward(const AttentionPlan& plan, void* workspace, cudaStream_t stream = nullptr) {
    plan.Forward(qkv_.get<Bfloat16>(), out_.get<Bfloat16>(), logsumexp_.get<float>(), workspace,
                 stream);
  }
  void Backward(const AttentionPlan& plan, void* workspace, cudaStream_t stream = nullptr) {
    plan.Backward(qkv_.get<Bfloat16>(), out_.get<Bfloat16>(), logsumexp_.get<float>(),
                  dout_.get<Bfloat16>(), dqkv_.get<Bfloat16>(), workspace, stream);
  }
  void SetQkv(int64_t token, int64_t element, float value) {
    const Bfloat16 rounded(value);
    MUSTER_CUDA_CHECK(cudaMemcpy(qkv_.get<Bfloat16>() + token * spec_.RowElements() + element,
                                 &rounded, sizeof(rounded), cudaMemcpyHostToDevice));
  }
  std::vector<uint16_t> OutBits() const { return out_.ToHost<uint16_t>(); }
  std::vector<uint16_t> DqkvBits() const { return dqkv_.ToHost<uint16_t>(); }
  std::vector<double> Out() const { return ToDouble(out_); }
  std::vector<double> Dqkv() const { return ToDouble(dqkv_); }
  std::vector<float> Logsumexp() const { return logsumexp_.ToHost<float>(); }
  AttentionReference Reference() const {
    return AttentionReference(spec_, ToDouble(qkv_), ToDouble(dout_));
  }

 private:
  int64_t Rows() const { return spec_.batch * spec_.positions; }
  int64_t Width() const { return spec_.heads * spec_.head_dim; }

  AttentionSpec spec_;
  DeviceBuffer qkv_, dqkv_, out_, dout_, logsumexp_;
};

class AttentionTest : public ::testing::Test {
 protected:
  const AttentionPlan& Plan(const AttentionSpec& spec) {
    const int64_t limit =
        (int64_t{512} << 20) + spec.batch * spec.heads * spec.positions * spec.positions * 2;
    const DeviceBuffer scratch(Attention::ScratchBytes(spec, limit));
    const AttentionPlan& plan = attention_.Plan(spec, scratch.span(), nullptr);
    std::printf("  %s: workspace %.1f MiB; %s\n", ToString(spec).c_str(),
                static_cast<double>(plan.WorkspaceBytes()) / (1 << 20), plan.Describe().c_str());
    return plan;
  }

  Attention attention_;
};

// Compares `rows` random query rows and as many key rows with the reference.
void ExpectReference(const AttentionSpec& spec, const Problem& problem, int64_t rows) {
  AttentionReference reference = problem.Reference();
  const std::vector<double> out = problem.Out(), dqkv = problem.Dqkv();
  const std::vector<float> logsumexp = problem.Logsumexp();
  reference.UseForward(out, logsumexp);
  const int64_t D = spec.head_dim;
  std::mt19937_64 engine(3);
  const auto draw = [&engine](int64_t n) {
    return static_cast<int64_t>(engine() % static_cast<uint64_t>(n));
  };
  SqnrMeter out_meter, dq_meter, dk_meter, dv_meter;
  double lse_error = 0;
  for (int64_t sample = 0; sample < rows; ++sample) {
    const int64_t b = draw(spec.batch), h = draw(spec.heads), i = draw(spec.positions);
    const AttentionReference::QueryRow row = reference.Query(b, h, i);
    const int64_t token = b * spec.positions + i;
    lse_error = std::max(
        lse_error,
        std::abs(row.logsumexp -
                 static_cast<double>(
                     logsumexp[static_cast<size_t>((b * spec.heads + h) * spec.positions + i)])));
    const int64_t g = draw(spec.kv_heads), j = draw(spec.positions);
    const AttentionReference::KeyRow key = reference.Key(b, g, j);
    const int64_t key_token = b * spec.positions + j;
    for (int64_t d = 0; d < D; ++d) {
      const auto at = [&](int64_t t, int64_t head) {
        return dqkv[static_cast<size_t>(t * spec.RowElements() + head * D + d)];
      };
      const auto index = static_cast<size_t>(d);
      out_meter.Add(out[static_cast<size_t>((token * spec.heads + h) * D + d)], row.out[index]);
      dq_meter.Add(at(token, h), row.dq[index]);
      dk_meter.Add(at(key_token, spec.heads + g), key.dk[index]);
      dv_meter.Add(at(key_token, spec.heads + spec.kv_heads + g), key.dv[index]);
    }
  }
  std::printf("  out %.1f dB, dq %.1f, dk %.1f, dv %.1f; logsumexp off by %.1e at most\n",
              out_meter.Decibel(), dq_meter.Decibel(), dk_meter.Decibel(), dv_meter.Decibel(),
              lse_error);
  EXPECT_GE(out_meter.Decibel(), 45);
  EXPECT_GE(dq_meter.Decibel(), 40);
  EXPECT_GE(dk_meter.Decibel(), 40);
  EXPECT_GE(dv_meter.Decibel(), 40);
  EXPECT_LE(lse_error, 1e-3);
  EXPECT_TRUE(std::none_of(dqkv.begin(), dqkv.end(), [](double x) { return std::isnan(x); }))
      << "an element of dqkv was not written";
}

class AttentionShapeTest : public AttentionTest,
                           public ::testing::WithParamInterface<AttentionSpec> {};

TEST_P(AttentionShapeTest, MatchesSumsInDouble) {
  const AttentionSpec spec = GetParam();
  const AttentionPlan& plan = Plan(spec);
  const DeviceBuffer workspace(plan.WorkspaceBytes());
  Problem problem(spec);
  problem.Forward(plan, workspace.get());
  problem.Backward(plan, workspace.get());
  ExpectReference(spec, problem, spec.positions <= 512 ? 512 : 48);
}

INSTANTIATE_TEST_SUITE_P(Small, AttentionShapeTest,
                         ::testing::Values(AttentionSpec{2, 256, 8, 2, 128},
                                           AttentionSpec{1, 200, 4, 4, 128},
                                           AttentionSpec{3, 128, 8, 1, 64},
                                           AttentionSpec{2, 256, 8, 2, 128, true}));
INSTANTIATE_TEST_SUITE_P(Full, AttentionShapeTest,
                         ::testing::Values(AttentionSpec{1, 8192, 32, 8, 128},
                                           AttentionSpec{2, 4096, 32, 8, 128}));

constexpr AttentionSpec kSmall{2, 256, 8, 2, 128};

class AttentionSmallTest : public AttentionTest {};

TEST_F(AttentionSmallTest, DeterministicRunsAreEqual) {
  AttentionSpec spec = kSmall;
  spec.deterministic = true;
  const AttentionPlan& plan = Plan(spec);
  const DeviceBuffer workspace(plan.WorkspaceBytes());
  Problem problem(spec);
  problem.Forward(plan, workspace.get());
  problem.Backward(plan, workspace.get());
  const std::vector<uint16_t> out = problem.OutBits(), dqkv = problem.DqkvBits();
  for (int run = 0; run < 5; ++run) {
    problem.Poison();
    problem.Forward(plan, workspace.get());
    problem.Backward(plan, workspace.get());
    ASSERT_EQ(problem.OutBits(), out);
    ASSERT_EQ(problem.DqkvBits(), dqkv);
  }
}

TEST_F(AttentionSmallTest, GraphEqualsDirectRun) {
  AttentionSpec spec = kSmall;
  spec.deterministic = true;
  const AttentionPlan& plan = Plan(spec);
  const DeviceBuffer workspace(plan.WorkspaceBytes());
  Problem problem(spec);
  problem.Forward(plan, workspace.get());
  problem.Backward(plan, workspace.get());
  const std::vector<uint16_t> out = problem.OutBits(), dqkv = problem.DqkvBits();
  problem.Poison();
  RunAsGraph([&](cudaStream_t stream) {
    problem.Forward(plan, workspace.get(), stream);
    problem.Backward(plan, workspace.get(), stream);
  });
  EXPECT_EQ(problem.OutBits(), out);
  EXPECT_EQ(problem.DqkvBits(), dqkv);
}

TEST_F(AttentionSmallTest, NanInAQueryStaysInItsRow) {
  const AttentionPlan& plan = Plan(kSmall);
  const DeviceBuffer workspace(plan.WorkspaceBytes());
  Problem problem(kSmall);
  constexpr int64_t kToken = 70, kHead = 5, D = 128;
  problem.SetQkv(kToken, kHead * D + 3, std::numeric_limits<float>::quiet_NaN());
  problem.Forward(plan, workspace.get());
  const std::vector<double> out = problem.Out();
  for (size_t i = 0; i < out.size(); ++i) {
    const bool in_row = static_cast<int64_t>(i) / D == kToken * kSmall.heads + kHead;
    ASSERT_EQ(std::isnan(out[i]), in_row) << i;
  }
}

TEST_F(AttentionSmallTest, PlansAreKept) {
  const AttentionPlan& plan = attention_.Plan(kSmall, {}, nullptr);
  EXPECT_EQ(&attention_.Plan(kSmall, {}, nullptr), &plan);
}

TEST_F(AttentionSmallTest, ErrorsNameTheShape) {
  const AttentionSpec spec{1, 128, 3, 2, 128};  // heads do not divide
  EXPECT_THAT([&] { attention_.Plan(spec, {}, nullptr); },
              ::testing::ThrowsMessage<CudaError>(::testing::HasSubstr("3:2 heads of 128")));
  const DeviceBuffer little(256);
  EXPECT_THAT([&] { attention_.Plan(kSmall, little.span(), nullptr); },
              ::testing::ThrowsMessage<CudaError>(::testing::HasSubstr("scratch of 256 bytes")));
}

}  // namespace
}  // namespace muster::kernels::cuda

int main(int argc, char** argv) {
  return muster::RunGpuTests(argc, argv);
}
