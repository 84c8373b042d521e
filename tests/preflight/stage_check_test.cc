#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/preflight/check_functions.h"

namespace muster::preflight {
namespace {

TEST(CheckStage, NamesHostsThatLackTheTreeOrHaveAnother) {
  std::vector<NodeFacts> nodes(4);
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i].host = "n" + std::to_string(i + 1);
  nodes[1].probe.set_stage_error("the staged tree 0123456789ab is not here");
  nodes[2].probe.set_stage_error("/s/lib/a.so: another size");
  nodes[3].absent = "no answer";
  nodes[3].probe.set_stage_error("never asked");
  Findings found;
  CheckStage(nodes, {}, found);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].host, "n2");
  EXPECT_EQ(found[0].check, "stage");
  EXPECT_EQ(found[0].severity, Severity::kError);
  EXPECT_EQ(found[1].host, "n3");
  EXPECT_EQ(found[1].value, "/s/lib/a.so: another size");
  EXPECT_THAT(found[1].fix, testing::HasSubstr("--stage"));
}

}  // namespace
}  // namespace muster::preflight
