#include "controller/engine/text.h"

#include <gtest/gtest.h>

namespace muster::engine {
namespace {

TEST(Printable, KeepsTextAndReplacesTheRest) {
  EXPECT_EQ(Printable("a\tb\nc\x01\x7f"), "a b\nc??");
  EXPECT_EQ(Printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(Printable("\xc3"), "?");                 // cut
  EXPECT_EQ(Printable("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(Printable("\xed\xa0\x80"), "???");       // surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "????");  // above U+10FFFF
  EXPECT_EQ(Printable("\xf0\x9f\x98\x80!"), "\xf0\x9f\x98\x80!");
}

TEST(Shorten, CutsBetweenCharacters) {
  EXPECT_EQ(Shorten("abc", 3), "abc");
  EXPECT_EQ(Shorten("abcd", 3), "abc...");
  EXPECT_EQ(Shorten("ab\xc3\xbc", 3), "ab...");
}

}  // namespace
}  // namespace muster::engine
