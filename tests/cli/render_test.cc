#include "controller/cli/render.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::cli {
namespace {

TEST(Table, PadsColumnsAndAlignsNumbersRight) {
  Table table({"JOB", "NAME", "EXIT"});
  table.AlignRight({0});
  table.Add({"7", "größe", "0"});
  table.Add({"12", "b", "137"});
  EXPECT_EQ(table.Render(Style()),
            "JOB  NAME   EXIT\n"
            "  7  größe  0\n"
            " 12  b      137\n");
}

TEST(Table, ColoursDoNotChangeTheWidths) {
  const Style style(true);
  Table table({"A", "B"});
  table.Add({style.Red("x"), "y"});
  EXPECT_EQ(table.Render(style),
            "\x1b[1mA\x1b[0m  \x1b[1mB\x1b[0m\n"
            "\x1b[31mx\x1b[0m  y\n");
}

TEST(Style, IsPlainWhereNobodyLooks) {
  setenv("TERM", "xterm", 1);
  EXPECT_FALSE(Style::For(-1).colour());
  EXPECT_EQ(Style().Red("x"), "x");
}

}  // namespace
}  // namespace muster::cli
