#include "trainer/fp8/cuda/tuner.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "trainer/kernels/cuda/fill_normal.h"
#include "trainer/tensor/cuda_check.h"
#include "trainer/tensor/cuda_stopwatch.h"

namespace muster::fp8::cuda {
namespace {

constexpr int kFirstRuns = 3;
constexpr size_t kFinalists = 4;
constexpr int kFinalRounds = 5;
constexpr float kFinalRoundMs = 30;
// In training the GPU runs at its power limit, and its clock follows what the work consumes: the
// algorithm with the least energy wins, not the one with the fewest cycles. So products that take
// long enough to matter run alone, first until clock and power have settled.
constexpr float kSustainedFromMs = 0.1f;
constexpr int kSustainedRounds = 2;
constexpr float kSettleMs = 100, kSustainedMs = 150;
constexpr int kScaleStride = kScaleAlignment / sizeof(float);
constexpr float kNever = std::numeric_limits<float>::infinity();

int64_t Align(int64_t bytes) {
  return (bytes + kGemmAlignment - 1) / kGemmAlignment * kGemmAlignment;
}
int64_t LeftBytes(const GemmSpec& s) {
  return Align(s.m * s.k * BytesOf(s.left));
}
int64_t RightBytes(const GemmSpec& s) {
  return Align(s.k * s.n * BytesOf(s.right));
}
int64_t OutBytes(const GemmSpec& s) {
  return Align(s.m * s.n * BytesOf(s.out));
}

// Fills `count` elements and returns the factor that brings them to unit deviation.
float Fill(ElementType type, void* data, int64_t count, uint64_t seed, cudaStream_t stream) {
  namespace kernels = muster::kernels::cuda;
  switch (type) {
    case ElementType::kFp32:
      kernels::FillNormal(static_cast<float*>(data), count, 1, seed, stream);
      return 1;
    case ElementType::kBf16:
      kernels::FillNormal(static_cast<Bfloat16*>(data), count, 1, seed, stream);
      return 1;
    case ElementType::kE4m3:
    case ElementType::kE5m2:
      break;
  }
  const Format format = type == ElementType::kE4m3 ? Format::kE4m3 : Format::kE5m2;
  const float deviation = kernels::ScaledDeviation(format);
  kernels::FillNormal(static_cast<uint8_t*>(data), format, count, deviation, seed, stream);
  return 1 / deviation;
}

// A product's operands in scratch memory.
class Rig {
 public:
  Rig(const GemmPlan& plan, std::span<std::byte> scratch, cudaStream_t stream)
      : plan_(plan), stream_(stream) {
    const GemmSpec& spec = plan.spec();
    if (static_cast<int64_t>(scratch.size()) < TuningBytes(spec)) {
      throw CudaError("tuning " + ToString(spec) + " needs " + std::to_string(TuningBytes(spec)) +
                      " bytes of scratch, not " + std::to_string(scratch.size()));
    }
    std::byte* next = scratch.data();
    const auto take = [&next](int64_t bytes) { return std::exchange(next, next + bytes); };
    void* left = take(LeftBytes(spec));
    void* right = take(RightBytes(spec));
    arguments_.left = left;
    arguments_.right = right;
    arguments_.out = take(OutBytes(spec));
    auto* scales = reinterpret_cast<float*>(take(kGemmAlignment));
    arguments_.left_scale_inv = scales;
    arguments_.right_scale_inv = scales + kScaleStride;
    workspace_ = next;
    const float left_scale = Fill(spec.left, left, spec.m * spec.k, 1, stream);
    const float right_scale = Fill(spec.right, right, spec.k * spec.n, 2, stream);
    const float host_scales[kScaleStride + 1] = {left_scale, 0, 0, 0, right_scale};
    Fill(spec.out, arguments_.out, spec.m * spec.n, 3, stream);
    MUSTER_CUDA_CHECK(cudaGetLastError());
    MUSTER_CUDA_CHECK(
        cudaMemcpyAsync(scales, host_scales, sizeof(host_scales), cudaMemcpyHostToDevice, stream));
    MUSTER_CUDA_CHECK(cudaStreamSynchronize(stream));
  }

  // Milliseconds for one product, of `runs` in a row; kNever when the algorithm does not run.
  float Time(const GemmAlgorithm& algorithm, int runs) {
    stopwatch_.Start(stream_);
    for (int i = 0; i < runs; ++i) {
      if (!plan_.Try(algorithm, arguments_, workspace_, stream_)) return kNever;
    }
    return stopwatch_.Stop(stream_) / static_cast<float>(runs);
  }

 private:
  const GemmPlan& plan_;
  cudaStream_t stream_;
  GemmArguments arguments_{};
  void* workspace_;
  CudaStopwatch stopwatch_;
};

struct Candidate {
  GemmAlgorithm algorithm;
  size_t rank;  // in cuBLAS's own order
  float milliseconds;
};

// How many products of `each` milliseconds take about `milliseconds`.
int RunsFor(float milliseconds, float each) {
  return std::clamp(static_cast<int>(milliseconds / each), 1, 10000);
}

void SortByTime(std::vector<Candidate>& candidates) {
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.milliseconds < b.milliseconds; });
}

}  // namespace

int64_t TuningBytes(const GemmSpec& spec) {
  return LeftBytes(spec) + RightBytes(spec) + OutBytes(spec) + kGemmAlignment + kGemmWorkspaceBytes;
}

Tuned Tune(const GemmPlan& plan, int limit, std::span<std::byte> scratch, cudaStream_t stream) {
  Rig rig(plan, scratch, stream);
  std::vector<Candidate> candidates;
  for (const GemmAlgorithm& algorithm : plan.Candidates(limit)) {
    Candidate candidate{algorithm, candidates.size(), rig.Time(algorithm, 1)};
    if (candidate.milliseconds != kNever) {
      candidate.milliseconds = rig.Time(algorithm, kFirstRuns);
    }
    candidates.push_back(candidate);
  }
  const Candidate first = candidates.front();
  SortByTime(candidates);
  candidates.resize(std::min(candidates.size(), kFinalists));
  const bool first_is_in = std::any_of(candidates.begin(), candidates.end(),
                                       [](const Candidate& c) { return c.rank == 0; });
  if (!first_is_in) candidates.push_back(first);
  if (candidates.front().milliseconds == kNever) {
    throw CudaError("no algorithm that cuBLAS offers can run " + ToString(plan.spec()));
  }

  // In turns, so that a clock that falls meanwhile falls for all.
  const float expected = candidates.front().milliseconds;
  const bool sustained = expected >= kSustainedFromMs;
  const int rounds = sustained ? kSustainedRounds : kFinalRounds;
  const int runs =
      sustained ? RunsFor(kSustainedMs, expected) : std::min(RunsFor(kFinalRoundMs, expected), 100);
  std::vector<std::vector<float>> times(candidates.size());
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (sustained) rig.Time(candidates[i].algorithm, RunsFor(kSettleMs, expected));
      times[i].push_back(rig.Time(candidates[i].algorithm, runs));
    }
  }
  float first_choice = kNever;
  for (size_t i = 0; i < candidates.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    candidates[i].milliseconds =
        (times[i][(times[i].size() - 1) / 2] + times[i][times[i].size() / 2]) / 2;
    if (candidates[i].rank == 0) first_choice = candidates[i].milliseconds;
  }
  SortByTime(candidates);
  return {candidates.front().algorithm, candidates.front().milliseconds * 1e3, first_choice * 1e3};
}

}  // namespace muster::fp8::cuda
