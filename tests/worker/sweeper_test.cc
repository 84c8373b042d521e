// Who counts as a process of an attempt, over a fake /proc.
#include "worker/ranks/sweeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/worker/fake_proc.h"
#include "worker/ranks/cgroup.h"

namespace muster::ranks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMarker[] = "MUSTER_ATTEMPT=ctl/1/0@tag";

class SweeperTest : public ::testing::Test {
 protected:
  std::vector<pid_t> Found() {
    result_ = FindLeftovers(proc_, target_);
    std::vector<pid_t> pids;
    for (const Leftover& leftover : result_.processes) pids.push_back(leftover.pid);
    return pids;
  }
  FakeProc proc_;
  SweepTarget target_{kMarker, 500, {}, {}, false};
  ScanResult result_;
};

TEST_F(SweeperTest, MarkerMustBeWhole) {
  proc_.Add(10, 1, 'S', Environment({"A=1", kMarker, "RANK=3"}));
  proc_.Add(11, 1, 'S', Environment({std::string(kMarker) + "x"}));
  proc_.Add(12, 1, 'S', Environment({std::string("X") + kMarker}));
  proc_.Add(13, 1, 'S', Environment({"MUSTER_ATTEMPT=ctl/1/0@other"}));
  proc_.Add(14, 1, 'S', std::string(kMarker));  // last, without its NUL
  EXPECT_THAT(Found(), ElementsAre(10, 14));
  EXPECT_EQ(result_.processes[0].rank, 3u);
  EXPECT_EQ(result_.processes[0].command, "cmd \xEF\xBF\xBD");
  EXPECT_EQ(result_.processes[0].wait_channel, "do_wait");
  EXPECT_FALSE(result_.processes[0].in_shim_tree);
  EXPECT_EQ(result_.processes[1].rank, std::nullopt);
}

TEST_F(SweeperTest, ZombiesOldOnesAndOurselvesDoNotCount) {
  const std::string marked = Environment({kMarker});
  proc_.Add(10, 1, 'Z', marked);
  proc_.Add(11, 1, 'X', marked);
  proc_.Add(12, 1, 'S', marked, /*start=*/499);
  proc_.Add(13, 2, 'S', marked);  // a kernel thread
  proc_.Add(getpid(), 1, 'S', marked);
  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_EQ(result_.unverified, "");
}

TEST_F(SweeperTest, TreesOfShimsNeedNoMarker) {
  target_.shims = {{100, 7}};
  proc_.Add(100, 1, 'S', "");
  proc_.Add(101, 100, 'S', "");
  proc_.Add(102, 101, 'R', std::nullopt);
  proc_.Add(103, 1, 'S', "");
  EXPECT_THAT(Found(), ElementsAre(101, 102));
  EXPECT_EQ(result_.processes[1].rank, 7u);
  EXPECT_TRUE(result_.processes[1].in_shim_tree);
}

TEST_F(SweeperTest, CgroupMembersNeedNoMarker) {
  target_.cgroup = {20};
  proc_.Add(20, 1, 'S', "");
  EXPECT_THAT(Found(), ElementsAre(20));
}

TEST_F(SweeperTest, HiddenEnvironmentsMatterOnlyWhenATreeWasLost) {
  proc_.Add(30, 1, 'S', std::nullopt);
  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_EQ(result_.unverified, "");
  target_.trees_incomplete = true;
  EXPECT_THAT(Found(), IsEmpty());
  EXPECT_NE(result_.unverified, "");
  proc_.entries[30].uid = getuid() + 1;
  Found();
  EXPECT_EQ(result_.unverified, "");
}

TEST_F(SweeperTest, AnUnreadableProcIsToldNotTakenForEmpty) {
  Found();
  EXPECT_EQ(result_.unverified, "/proc could not be read");
}

TEST(ProcTree, SurvivesLoops) {
  FakeProc proc;
  proc.Add(5, 6, 'S', "");
  proc.Add(6, 5, 'S', "");
  EXPECT_LE(facts::ProcTree(proc).Descendants(5).size(), 3u);
}

TEST(Cgroup, MountIsFoundWhereverItIs) {
  EXPECT_EQ(
      FindCgroup2Mount("31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
                       "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                       "41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"),
      "/sys/fs/cgroup/unified");
  EXPECT_EQ(FindCgroup2Mount("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), "");
  EXPECT_EQ(FindOwnCgroup2("9:name=systemd:/\n0::/user.slice/a b\n"), "/user.slice/a b");
  EXPECT_EQ(FindOwnCgroup2("9:name=systemd:/\n"), "");
}

}  // namespace
}  // namespace muster::ranks
