#include "controller/cli/check_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;

void Add(v1::CheckResponse& response, const std::string& host, const std::string& value,
         const std::string& fix) {
  v1::Finding& finding = *response.add_findings();
  finding.set_check("connect");
  finding.set_severity("error");
  finding.set_host(host);
  finding.set_value(value);
  finding.set_fix(fix);
}

TEST(CheckText, AFixNamesAllHostsOfItsFinding) {
  v1::CheckResponse response;
  for (const std::string host : {"n1", "n2", "n10"}) {
    Add(response, host, "did not say hello",
        "see whether " + host + " is up, or take it out with --exclude " + host);
  }
  EXPECT_THAT(CheckText(response, Style(false)),
              HasSubstr("connect: n1, n2, n10: did not say hello\n    fix: see whether n1, n2, n10 "
                        "is up, or take it out with --exclude n1@n2@n10\n"));
}

TEST(CheckText, AFixOfOneHostStaysAsItIs) {
  v1::CheckResponse response;
  Add(response, "n1", "is slow", "on n1: look at n10; then n1");
  EXPECT_THAT(CheckText(response, Style(false)), HasSubstr("fix: on n1: look at n10; then n1\n"));
}

TEST(CheckText, FixesThatDifferByMoreThanTheHostAreAllShown) {
  v1::CheckResponse response;
  Add(response, "n1", "is slow", "on n1: kill 1");
  Add(response, "n2", "is slow", "on n2: kill 2");
  const std::string text = CheckText(response, Style(false));
  EXPECT_THAT(text, HasSubstr("fix: on n1: kill 1\n    fix: on n2: kill 2\n"));
}

}  // namespace
}  // namespace muster::cli
