#include "trainer/fp8/scaling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/model/golden.h"
#include "trainer/kernels/fp8_cast.h"

namespace muster::fp8 {
namespace {

using nlohmann::json;
using testing::GoldenJson;

// The golden files write fp32 exactly, and nan, inf, -inf as strings.
float Float(const json& value) {
  if (!value.is_string()) return static_cast<float>(value.get<double>());
  if (value == "nan") return std::numeric_limits<float>::quiet_NaN();
  return value == "inf" ? std::numeric_limits<float>::infinity()
                        : -std::numeric_limits<float>::infinity();
}

std::vector<float> Floats(const json& values) {
  std::vector<float> floats;
  for (const json& value : values) floats.push_back(Float(value));
  return floats;
}

uint32_t Bits(const json& hex) {
  return static_cast<uint32_t>(std::stoul(hex.get<std::string>(), nullptr, 16));
}

Format FormatNamed(const json& name) {
  return name == "e4m3" ? Format::kE4m3 : Format::kE5m2;
}

TEST(ScalingTest, CurrentScalesEqualTheGoldenBits) {
  const json cases = GoldenJson("fp8/current_scales.json")["cases"];
  EXPECT_GT(cases.size(), 20u);
  for (const json& item : cases) {
    const float scale = CurrentScale(Float(item["amax"]), FormatNamed(item["format"]),
                                     Float(item["epsilon"]), item["pow2"].get<bool>());
    EXPECT_EQ(std::bit_cast<uint32_t>(scale), Bits(item["scale_bits"])) << item;
    EXPECT_EQ(std::bit_cast<uint32_t>(ScaleInverse(scale)), Bits(item["scale_inv_bits"])) << item;
  }
}

// Row 0 of the history after one step's tensors, by running maximum.
float RunStepAmaxes(const json& step, Format format, float scale) {
  float amax = Float(step["amax_in"]);
  if (step.contains("tensor")) {
    const std::vector<float> tensor = Floats(step["tensor"]);
    std::vector<uint8_t> codes(tensor.size());
    kernels::CastToFp8<float>(static_cast<int64_t>(tensor.size()), tensor.data(), scale, format,
                              codes.data(), nullptr);
    for (size_t i = 0; i < codes.size(); ++i) {
      const uint8_t expected = step["quantised"][i].get<uint8_t>();
      EXPECT_TRUE(codes[i] == expected ||
                  (std::isnan(Decode(format, codes[i])) && std::isnan(Decode(format, expected))))
          << step;
    }
    const float measured = kernels::Amax(static_cast<int64_t>(tensor.size()), tensor.data());
    EXPECT_EQ(measured, amax) << step;
  }
  if (step.contains("more_amax_in")) {
    for (const json& more : step["more_amax_in"]) amax = std::max(amax, Float(more));
  }
  return amax;
}

TEST(ScalingTest, DelayedScriptsEqualTheGoldenBits) {
  const json scripts = GoldenJson("fp8/delayed.json")["scripts"];
  EXPECT_GE(scripts.size(), 5u);
  for (const json& script : scripts) {
    SCOPED_TRACE(script["title"].get<std::string>());
    const DelayedRule rule{
        script["history_len"].get<int64_t>(),
        script["algo"] == "max" ? config::AmaxAlgo::kMax : config::AmaxAlgo::kMostRecent,
        static_cast<int>(script["margin"].get<double>()), FormatNamed(script["format"])};
    // Two neighbours that never see anything check that tensors do not disturb each other.
    std::vector<float> scale = {1, Float(script["initial_scale"]), 1};
    std::vector<float> history(static_cast<size_t>(3 * rule.history_len));
    for (const json& step : script["steps"]) {
      SCOPED_TRACE(step["note"].dump());
      EXPECT_EQ(scale[1], Float(step["scale_before"]));
      history[1] = RunStepAmaxes(step, rule.format, scale[1]);
      const float reduced =
          step.contains("reduced_amax") ? Float(step["reduced_amax"]) : history[1];
      const float amaxes[] = {0, reduced, 0};
      UpdateDelayed(rule, 3, amaxes, scale.data(), history.data());
      EXPECT_EQ(std::bit_cast<uint32_t>(scale[1]), Bits(step["scale_after_bits"]));
      EXPECT_EQ(std::bit_cast<uint32_t>(ScaleInverse(scale[1])),
                Bits(step["scale_inv_after_bits"]));
      const std::vector<float> expected = Floats(step["history_after"]);
      for (size_t row = 0; row < expected.size(); ++row) {
        const float actual = history[row * 3 + 1];
        EXPECT_TRUE(actual == expected[row] || (std::isnan(actual) && std::isnan(expected[row])))
            << "row " << row << ": " << actual << " instead of " << expected[row];
        EXPECT_EQ(history[row * 3], 0);
      }
      EXPECT_EQ(scale[0], 1);
      EXPECT_EQ(scale[2], 1);
    }
  }
}

}  // namespace
}  // namespace muster::fp8
