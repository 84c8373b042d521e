#include "common/times_format.h"

#include <gtest/gtest.h>

#include <bit>

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "the .times format is little endian");

TEST(TimesFormat, HeaderIsRecognisedAndAnyFlippedByteIsNot) {
  const auto header = EncodeTimesHeader();
  EXPECT_TRUE(IsTimesHeader(header.data()));
  for (size_t i = 0; i < header.size(); ++i) {
    auto broken = header;
    broken[i] = static_cast<char>(broken[i] ^ 0x10);
    EXPECT_FALSE(IsTimesHeader(broken.data())) << "byte " << i;
  }
}

TEST(TimesFormat, RecordsRoundTripInLittleEndian) {
  const TimesRecord record{.offset = 0x0102030405060708, .realtime_ns = -2};
  const auto bytes = EncodeTimesRecord(record);
  EXPECT_EQ(bytes[0], 8);
  EXPECT_EQ(bytes[7], 1);
  EXPECT_EQ(bytes[8], static_cast<char>(0xFE));
  EXPECT_EQ(DecodeTimesRecord(bytes.data()), record);
}

}  // namespace
}  // namespace muster
