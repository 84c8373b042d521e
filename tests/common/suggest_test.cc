#include "common/suggest.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const std::vector<std::string> kKeys = {"slots", "max_slots", "port", "user", "gpus"};

TEST(Nearest, FindsPlausibleSlips) {
  EXPECT_EQ(Nearest("slot", kKeys), "slots");
  EXPECT_EQ(Nearest("Slots", kKeys), "slots");
  EXPECT_EQ(Nearest("solts", kKeys), "slots");
  EXPECT_EQ(Nearest("usr", kKeys), "user");
  EXPECT_EQ(Nearest("gpu", kKeys), "gpus");
}

TEST(Nearest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(Nearest("bandwidth", kKeys), std::nullopt);
  EXPECT_EQ(Nearest("", {}), std::nullopt);
}

TEST(Nearest, IsBoundedOnHugeInput) {
  EXPECT_EQ(Nearest(std::string(1'000'000, 'x'), kKeys), std::nullopt);
}

TEST(DidYouMean, IsAHalfSentenceOrNothing) {
  EXPECT_EQ(DidYouMean("slot", kKeys), "; did you mean 'slots'?");
  EXPECT_EQ(DidYouMean("bandwidth", kKeys), "");
}

}  // namespace
}  // namespace muster
