#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "trainer/kernels/cpu/vectorize.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/fp8_cast.h"
#include "trainer/kernels/rope.h"
#include "trainer/tensor/bfloat16.h"

// Properties of the reference kernels that need no other library.

namespace muster::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> RandomVector(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(engine);
  return values;
}

TEST(ExpTest, IsWithinTwoUnitsInTheLastPlace) {
  for (float x = -87.0f; x < 88.0f; x += 0.0173f) {
    const double exact = std::exp(static_cast<double>(x));
    const double unit = exact * 1.2e-7;
    EXPECT_NEAR(Exp(x), exact, 2 * unit) << x;
  }
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(Exp(std::nanf(""))));
  EXPECT_LT(Exp(-kInfinity), 2e-38f);
}

TEST(Bfloat16Test, RoundsToTheNearestEven) {
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += 9973) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const float rounded = static_cast<float>(Bfloat16(x));
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(rounded));
      continue;
    }
    const uint32_t down = static_cast<uint32_t>(bits) & 0xffff0000;
    const uint32_t rest = static_cast<uint32_t>(bits) & 0xffff;
    const bool up = rest > 0x8000 || (rest == 0x8000 && (down >> 16) % 2 == 1);
    EXPECT_EQ(std::bit_cast<uint32_t>(rounded), up ? down + 0x10000 : down);
  }
}

TEST(AmaxTest, IgnoresNanButNotInfinity) {
  const float nan = std::nanf("");
  std::vector<float> x(100, 0.25f);
  x[3] = nan;
  x[97] = -3.5f;
  x[99] = -nan;
  EXPECT_EQ(Amax(100, x.data()), 3.5f);
  x[50] = -kInfinity;
  EXPECT_EQ(Amax(100, x.data()), kInfinity);
  const std::vector<float> all_nan(40, nan);
  EXPECT_EQ(Amax(40, all_nan.data()), 0.0f);
  EXPECT_EQ(Amax<float>(0, nullptr), 0.0f);
}

TEST(Fp8CastTest, BulkCastEqualsTheScalarRuleForEveryLength) {
  for (const fp8::Format format : {fp8::Format::kE4m3, fp8::Format::kE5m2}) {
    for (const size_t count : {1u, 15u, 16u, 17u, 63u, 64u, 200u}) {
      const std::vector<double> source = RandomVector(count, 7);
      std::vector<float> x(source.begin(), source.end());
      x[0] = kInfinity;
      std::vector<uint8_t> codes(count), alone(count);
      std::vector<float> values(count);
      CastToFp8(static_cast<int64_t>(count), x.data(), 37.5f, format, codes.data(), values.data());
      CastToFp8<float>(static_cast<int64_t>(count), x.data(), 37.5f, format, alone.data(), nullptr);
      EXPECT_EQ(codes, alone);
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(codes[i], fp8::Encode(format, x[i] * 37.5f));
        EXPECT_EQ(values[i], fp8::Decode(format, codes[i]));
      }
    }
  }
}

TEST(RopeTest, PackingGradientsIsTheAdjointOfUnpacking) {
  const QkvShape shape{2, 5, 3, 2, 8};
  const RopeTable<double> table = MakeRopeTable<double>(5, RopeFrequencies(8, 10000, {}));
  const size_t packed = 2 * 5 * 3 * 4 * 8, q_size = packed / 2, kv_size = packed / 4;
  const std::vector<double> qkv = RandomVector(packed, 1), dq = RandomVector(q_size, 2);
  const std::vector<double> dk = RandomVector(kv_size, 3), dv = RandomVector(kv_size, 4);
  std::vector<double> q(q_size), k(kv_size), v(kv_size), dqkv(packed);
  RopeUnpack(shape, table.cos.data(), table.sin.data(), qkv.data(), q.data(), k.data(), v.data());
  RopePackGradient(shape, table.cos.data(), table.sin.data(), dq.data(), dk.data(), dv.data(),
                   dqkv.data());
  double forward = 0, backward = 0, norm_in = 0, norm_out = 0;
  for (size_t i = 0; i < q_size; ++i) forward += q[i] * dq[i], norm_out += q[i] * q[i];
  for (size_t i = 0; i < kv_size; ++i) forward += k[i] * dk[i] + v[i] * dv[i];
  for (size_t i = 0; i < kv_size; ++i) norm_out += k[i] * k[i] + v[i] * v[i];
  for (size_t i = 0; i < packed; ++i) backward += qkv[i] * dqkv[i], norm_in += qkv[i] * qkv[i];
  EXPECT_NEAR(forward, backward, 1e-12 * std::abs(forward) + 1e-12);
  EXPECT_NEAR(norm_out, norm_in, 1e-12 * norm_in);  // rotations keep lengths
}

TEST(CrossEntropyTest, MaskedRowsCountForNothingWhateverTheirLabel) {
  std::vector<float> logits = {1, 2, 3, 4, 5, 6};
  const int64_t labels[] = {-1, 2};
  const float mask[] = {0, 1};
  const CrossEntropySum sum = CrossEntropy(2, 3, logits.data(), labels, mask, true);
  EXPECT_EQ(sum.tokens, 1);
  EXPECT_NEAR(sum.loss, std::log(1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
  EXPECT_EQ(logits[0], 0);
  EXPECT_EQ(logits[1], 0);
  EXPECT_EQ(logits[2], 0);
  EXPECT_NEAR(logits[3] + logits[4] + logits[5], 0, 1e-6);
}

TEST(CrossEntropyTest, LargeLogitsNeitherOverflowNorLosePrecision) {
  std::vector<float> logits = {1000, 1001, -1000, 1e30f};
  const int64_t label = 3;
  const float mask = 1;
  const CrossEntropySum sum = CrossEntropy(1, 4, logits.data(), &label, &mask, true);
  EXPECT_NEAR(sum.loss, 0, 1e-30);
  for (const float gradient : logits) EXPECT_NEAR(gradient, 0, 1e-30);
}

TEST(CrossEntropyTest, NanReachesTheLoss) {
  for (size_t at = 0; at < 20; ++at) {
    std::vector<float> logits(20, 1.0f);
    logits[at] = std::nanf("");
    const int64_t label = 3;
    const float mask = 1;
    EXPECT_TRUE(std::isnan(CrossEntropy(1, 20, logits.data(), &label, &mask, false).loss)) << at;
  }
}

TEST(RangeTest, IdsOutsideTheVocabularyAreNamed) {
  std::vector<float> buffer(8);
  const int64_t label = 4;
  const float mask = 1;
  try {
    CrossEntropy(1, 4, buffer.data(), &label, &mask, false);
    FAIL();
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "label 4 at token 0 is outside the vocabulary of 4");
  }
  const int64_t tokens[] = {1, -7};
  const std::vector<float> table(8);
  try {
    EmbeddingForward(2, 2, 4, tokens, table.data(), buffer.data());
    FAIL();
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "token -7 at position 1 is outside the vocabulary of 4");
  }
}

}  // namespace
}  // namespace muster::kernels
