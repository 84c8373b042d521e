#include "controller/logs/gaps.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/logs/temp_dir.h"

namespace muster::logs {
namespace {

TEST(Gaps, TellFileAndStreamApart) {
  const TempDir dir;
  Gaps gaps(dir.File("stdout.gaps"));
  ASSERT_TRUE(gaps.Add({.at = 10, .lost = 100, .marker = 5}).ok());
  ASSERT_TRUE(gaps.Add({.at = 20, .lost = 7, .marker = 5}).ok());
  EXPECT_EQ(ReadFile(dir.File("stdout.gaps")), "10 100 5\n20 7 5\n");
  Gaps again(dir.File("stdout.gaps"));
  EXPECT_EQ(*again.Recover(30), 30U);
  EXPECT_EQ(again.lost(), 107U);
  EXPECT_EQ(again.ToStream(10), 10U);
  EXPECT_EQ(again.ToStream(12), 10U);
  EXPECT_EQ(again.ToStream(30), 127U);
}

TEST(Gaps, HoweverManyAreAllFoundAgain) {
  const TempDir dir;
  std::string text;
  constexpr uint64_t kCount = 100'000;
  for (uint64_t i = 0; i < kCount; ++i) text += std::to_string(i * 1'000'000) + " 1000 100\n";
  WriteFile(dir.File("stdout.gaps"), text);
  Gaps gaps(dir.File("stdout.gaps"));
  ASSERT_TRUE(gaps.Recover(kCount * 1'000'000).ok());
  EXPECT_EQ(gaps.lost(), kCount * 1000);
}

TEST(Gaps, WhatDoesNotCountIsGone) {
  const TempDir dir;
  const std::string path = dir.File("stdout.gaps");
  for (const char* tail : {"20 7 5\n", "20 7", "what\n", "20 7 5\n30 1 1\n"}) {
    WriteFile(path, std::string("10 100 5\n") + tail);
    Gaps gaps(path);
    const uint64_t size = *gaps.Recover(22);
    EXPECT_EQ(size, std::string(tail).rfind("20 7 5", 0) == 0 ? 20U : 22U) << tail;
    EXPECT_EQ(ReadFile(path), "10 100 5\n");
    ASSERT_TRUE(gaps.Add({.at = 22, .lost = 3, .marker = 4}).ok());
    EXPECT_EQ(ReadFile(path), "10 100 5\n22 3 4\n");
  }
}

}  // namespace
}  // namespace muster::logs
