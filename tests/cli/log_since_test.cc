#include "controller/cli/log_since.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace muster::cli {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNow = 1'700'000'000 * kSecond;

int64_t Since(const std::string& text) {
  const auto since = ParseSince(text, kNow);
  EXPECT_TRUE(since.ok()) << text << ": " << since.status();
  return since.ok() ? *since : 0;
}

TEST(ParseSince, Durations) {
  EXPECT_EQ(Since("10m"), kNow - 600 * kSecond);
  EXPECT_EQ(Since("1h30m"), kNow - 5400 * kSecond);
  EXPECT_EQ(Since("2d"), kNow - 2 * 86400 * kSecond);
  EXPECT_EQ(Since("1d12h"), kNow - 129600 * kSecond);
  EXPECT_EQ(Since("500ms"), kNow - kSecond / 2);
}

TEST(ParseSince, Moments) {
  EXPECT_EQ(Since("@1699999999"), kNow - kSecond);
  EXPECT_EQ(Since("2023-11-14T22:13:20Z"), kNow);
  EXPECT_EQ(Since("2023-11-14T22:13:20.5Z"), kNow + kSecond / 2);
  // Local ones: read back as this machine's zone says.
  std::time_t seconds = kNow / kSecond;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  EXPECT_EQ(Since(text), kNow);
  std::strftime(text, sizeof text, "%H:%M:%S", &local);
  EXPECT_EQ(Since(text), kNow);
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M", &local);
  EXPECT_EQ(Since(text), kNow - local.tm_sec * kSecond);
}

TEST(ParseSince, RefusesWhatIsNoTime) {
  for (const char* text :
       {"", "10", "m", "-5m", "yesterday", "25:00", "2023-13-01", "@x", "1d2d"}) {
    EXPECT_FALSE(ParseSince(text, kNow).ok()) << text;
  }
}

}  // namespace
}  // namespace muster::cli
