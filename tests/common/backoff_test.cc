#include "common/backoff.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

TEST(Backoff, DoublesUpToTheMaximum) {
  Backoff backoff(milliseconds(100), milliseconds(350));
  EXPECT_EQ(backoff.Next(), milliseconds(100));
  EXPECT_EQ(backoff.Next(), milliseconds(200));
  EXPECT_EQ(backoff.Next(), milliseconds(350));
  EXPECT_EQ(backoff.Next(), milliseconds(350));
}

TEST(Backoff, StartsAgainAfterSuccess) {
  Backoff backoff(milliseconds(100), milliseconds(1000));
  backoff.Next();
  backoff.Next();
  backoff.Reset();
  EXPECT_EQ(backoff.Next(), milliseconds(100));
}

}  // namespace
}  // namespace muster
