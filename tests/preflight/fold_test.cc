#include "controller/preflight/fold.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::preflight {
namespace {

using ::testing::ElementsAre;

Finding Missing(const std::string& host) {
  return {"program", Severity::kError, host, "train: no such file", "", "install train on " + host};
}

TEST(Fold, HostsWithTheSameFindingShareALine) {
  const auto folded = Fold({Missing("n1"), Missing("n2"), Missing("n10")});
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(ToLines(folded[0]),
            "program: n1, n2, n10: train: no such file; fix: install train on n1, n2, n10");
}

TEST(Fold, ManyHostsAreCountedAndAllOfThemExcluded) {
  std::vector<Finding> findings;
  for (int i = 1; i <= 40; ++i) {
    const std::string host = "n" + std::to_string(i);
    findings.push_back({"connect", Severity::kError, host, "no answer", "", "--exclude " + host});
  }
  const auto folded = Fold(findings);
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(folded[0].hosts, "n1, n2, n3, n4, n5, n6, n7, n8 and 32 more");
  EXPECT_THAT(folded[0].fixes.front(), ::testing::EndsWith("@n39@n40"));
}

TEST(Fold, HostsThatDifferInTheirNameAndKeyShareALine) {
  std::vector<Finding> findings;
  for (const char* host : {"n1", "n2", "n10"}) {
    const std::string name = host;
    findings.push_back({"connect", Severity::kError, name,
                        "ssh " + name + ": host key ssh-ed25519 SHA256:Ab+/" + name + " of " +
                            name + " is in none of its known_hosts; connect once by hand",
                        "", "take " + name + " out with --exclude " + name});
  }
  const auto folded = Fold(findings);
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(ToLines(folded[0]),
            "connect: n1, n2, n10: ssh HOST: host key ssh-ed25519 SHA256:... of HOST is in none of "
            "its known_hosts; connect once by hand; fix: take n1, n2, n10 out with --exclude "
            "n1@n2@n10");
}

TEST(Fold, WhatDiffersStaysApart) {
  Finding other = Missing("n2");
  other.value = "train: permission denied";
  Finding warning = Missing("n3");
  warning.severity = Severity::kWarning;
  EXPECT_EQ(Fold({Missing("n1"), other, warning}).size(), 3U);
}

TEST(Fold, EachFixThatDiffersByMoreThanTheHostHasALine) {
  Finding one = Missing("n1");
  Finding two = Missing("n2");
  one.fix = "kill 1";
  two.fix = "kill 2";
  const auto folded = Fold({one, two});
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_THAT(folded[0].fixes, ElementsAre("kill 1", "kill 2"));
  EXPECT_EQ(ToLines(folded[0]), "program: n1, n2: train: no such file; fix: kill 1\n  fix: kill 2");
}

TEST(Fold, AFindingOfTheWholeJobNamesNoHost) {
  const auto folded = Fold({{"network", Severity::kError, "", "no common interface", "", ""}});
  ASSERT_EQ(folded.size(), 1U);
  EXPECT_EQ(ToLines(folded[0]), "network: no common interface");
}

}  // namespace
}  // namespace muster::preflight
