#include "controller/nodes/error_text.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::nodes {
namespace {

TEST(ErrorTextTest, TheLastLinesOnOne) {
  ErrorText text;
  EXPECT_EQ(text.Tail(), "");
  text.Append("\n first\r\nsecond\n\n");
  EXPECT_EQ(text.Tail(), "first second");
  text.Append(std::string(100'000, 'x'));
  text.Append("end\n");
  EXPECT_LE(text.Tail().size(), 1000u);
  EXPECT_EQ(text.Tail().substr(text.Tail().size() - 4), "xend");
}

TEST(ErrorTextTest, NothingThatSteersATerminal) {
  ErrorText text;
  text.Append("a\x1b]0;title\a b\tc\x7f d\u00e9\n");
  EXPECT_EQ(text.Tail(), "a ]0;title  b c  d\u00e9");
}

}  // namespace
}  // namespace muster::nodes
