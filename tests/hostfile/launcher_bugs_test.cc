#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/hostfile/hostfile.h"
#include "controller/hostfile/select.h"

// Reports against other launchers' hostfiles, each as a test of what happens here. Those about
// plans are in tests/plan.

namespace muster::hostfile {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// DeepSpeed #5221, DeepSpeedExamples #575, pith-train PR 91: a hostfile that is not there was a
// warning, and the job ran on one machine.
TEST(LauncherBugs, AMissingFileIsAnErrorAndNotThisMachine) {
  const Result result = ReadHostfile("/nowhere/hostfile_123");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.inventory.hosts_size(), 0);
  EXPECT_THAT(result.errors[0].message, HasSubstr("/nowhere/hostfile_123"));
}

// DeepSpeed #3669: the message said "{line}" instead of the line.
TEST(LauncherBugs, AWrongLineIsShown) {
  const Result result = ParseHostfile("a slots=8\nb slotz=8\n");
  EXPECT_THAT(FormatErrors("hosts", result.errors),
              AllOf(HasSubstr("hosts:2:"), HasSubstr("slotz"), HasSubstr("slots")));
}

// DeepSpeed PR 669, horovod: a blank or comment line broke the file. MT-MegatronLM's scripts skip
// such lines when they start ranks and count them when they number them.
TEST(LauncherBugs, BlankAndCommentLinesCountNowhere) {
  const Result result = ParseHostfile("a slots=8\n\n# b slots=8\n  \nc slots=8\n");
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result.inventory.hosts_size(), 2);
  EXPECT_EQ(result.inventory.hosts(1).host(), "c");
  EXPECT_EQ(result.inventory.hosts(1).line(), 5U);
}

// Horovod #1428: several lines were not read.
TEST(LauncherBugs, SeveralLines) {
  EXPECT_EQ(ParseHostfile("10.0.0.1 slots=8\n10.0.0.2 slots=8\n").inventory.hosts_size(), 2);
}

// DeepSpeed #3624: --include work1:2,3 with slots=2 failed with "No slot 2 specified".
TEST(LauncherBugs, DevicesBeyondTheSlotsAreExplained) {
  v1::Inventory inventory = ParseHostfile("work1 slots=2\n").inventory;
  inventory.set_source("hosts");
  EXPECT_THAT(Include("work1:2,3", &inventory).message(),
              AllOf(HasSubstr("work1 has no device 2"), HasSubstr("hosts:1"), HasSubstr("0-1")));
  // With gpus= the numbers are the devices', not a count.
  inventory = ParseHostfile("work1 gpus=2,3\n").inventory;
  EXPECT_TRUE(Include("work1:2,3", &inventory).ok());
}

// simgrid #136, and every `wc -l`: the last host was lost without a newline after it.
TEST(LauncherBugs, TheLastLineNeedsNoNewline) {
  EXPECT_EQ(ParseHostfile("a slots=1\nb slots=1").inventory.hosts_size(), 2);
}

// PRRTE's notes: an error that gave success, and line numbers that went on from file to file.
TEST(LauncherBugs, EveryErrorFailsAndLinesBeginAnew) {
  for (int i = 0; i < 2; ++i) {
    const Result result = ParseHostfile("a slots=1\n^b\n");
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.errors[0].line, 2U);
    EXPECT_EQ(result.inventory.hosts_size(), 0);
  }
}

// Open-Sora #657: the format was nowhere to be seen.
TEST(LauncherBugs, AnErrorSaysWhatToWrite) {
  EXPECT_THAT(ParseHostfile("node01 8\n").errors[0].message, HasSubstr("slots=8"));
  EXPECT_THAT(ParseHostfile("node01:8\n").errors[0].message, HasSubstr("slots=8"));
}

}  // namespace
}  // namespace muster::hostfile
