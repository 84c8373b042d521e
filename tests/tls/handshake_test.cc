#include "common/tls/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::tls {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

TEST(Refusal, ReadsBackWithTheClocksDifference) {
  const std::string frame = RefusalFrame(absl::FailedPreconditionError("no good"), kNow - 7200);
  EXPECT_EQ(RefusalLength(frame), frame.size());
  const absl::Status same = ReadRefusal(frame, kNow - 7200);
  EXPECT_EQ(same.message(), "it refuses us: no good");
  const absl::Status behind = ReadRefusal(frame, kNow);
  EXPECT_THAT(std::string(behind.message()), HasSubstr("its clock is 2 hours behind"));
  EXPECT_TRUE(absl::IsFailedPrecondition(behind));
}

TEST(Refusal, OfAnyLengthIsBounded) {
  const std::string frame = RefusalFrame(absl::InternalError(std::string(100'000, 'x')), kNow);
  EXPECT_LE(frame.size(), kLargestRefusal);
  EXPECT_EQ(RefusalLength(frame), frame.size());
}

TEST(Refusal, OtherFramesAreNone) {
  EXPECT_EQ(RefusalLength(std::string("\0\0\0\4\0\0\0\0\0", 9)), 0u);
  EXPECT_EQ(RefusalLength("short"), 0u);
}

TEST(Refusal, HostileTextIsHarmless) {
  const std::string head("\xff\xff\xff\7\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
  EXPECT_LE(RefusalLength(head), kLargestRefusal);
  for (const std::string& text :
       {std::string(""), std::string("muster "), std::string("muster 99999999999999999999 x"),
        std::string("muster -9223372036854775808 x"), std::string("muster 5"),
        std::string("other server")}) {
    EXPECT_FALSE(ReadRefusal(head + text, kNow).ok());
  }
  const std::string said(ReadRefusal(head + "muster 1 a\x1b[2J\nb", kNow).message());
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_EQ(said.find('\n'), std::string::npos);
  EXPECT_FALSE(ReadRefusal("x", kNow).ok());
}

}  // namespace
}  // namespace muster::tls
