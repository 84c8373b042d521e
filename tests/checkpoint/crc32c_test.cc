#include "trainer/checkpoint/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace muster::checkpoint {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(Crc32c(0, "123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(0, "", 0), 0u);
  const std::string zeros(32, '\0');
  EXPECT_EQ(Crc32c(0, zeros.data(), zeros.size()), 0x8a9136aau);
}

TEST(Crc32c, BothFormsAgreeForAllLengthsAndSplits) {
  std::mt19937 random(1);
  std::string data(300, '\0');
  for (char& c : data) c = static_cast<char>(random());
  for (size_t n = 0; n <= data.size(); ++n) {
    const uint32_t whole = internal::Crc32cPortable(0, data.data(), n);
    EXPECT_EQ(Crc32c(0, data.data(), n), whole);
    const size_t cut = n / 3;
    EXPECT_EQ(Crc32c(Crc32c(0, data.data(), cut), data.data() + cut, n - cut), whole);
  }
}

}  // namespace
}  // namespace muster::checkpoint
