#include "trainer/tools/progress.h"

#include <gtest/gtest.h>

namespace muster::tools {
namespace {

TEST(FormatBar, ShowsSpeedAndTimeLeft) {
  EXPECT_EQ(FormatBar({.size = 3'000'000'000,
                       .taken = 750'000'000,
                       .characters = 750'000'000,
                       .tokens = 200'000'000,
                       .seconds = 10}),
            "[######------------------]  25%  750.0 MB of 3.00 GB  75.0 MB/s  20.00 M tokens/s  "
            "0:30 left");
}

TEST(FormatBar, SpeedIsOfTextAndTimeOfWhatThisRunRead) {
  // Packed four to one, and resumed half-way.
  EXPECT_EQ(FormatBar({.size = 100'000'000,
                       .taken = 60'000'000,
                       .taken_at_start = 50'000'000,
                       .characters = 40'000'000,
                       .tokens = 10'000'000,
                       .seconds = 1000}),
            "[##############----------]  60%  60.0 MB of 100.0 MB  0.0 MB/s  0.01 M tokens/s  "
            "1:06:40 left");
}

TEST(FormatBar, UnknownSizeAndTheVeryStart) {
  EXPECT_EQ(
      FormatBar({.taken = 5'000'000, .characters = 5'000'000, .tokens = 1'000'000, .seconds = 1}),
      "5.0 MB  5.0 MB/s  1.00 M tokens/s");
  EXPECT_EQ(FormatBar({.size = 10}),
            "[------------------------]   0%  0.0 MB of 0.0 MB  0.0 MB/s  0.00 M tokens/s  ? left");
}

}  // namespace
}  // namespace muster::tools
