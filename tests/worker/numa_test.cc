// Processors near devices: trees of /proc and /sys as machines have them.
#include "worker/facts/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace muster::facts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ParseCpuList, ReadsTheKernelsLists) {
  EXPECT_THAT(ParseCpuList("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(ParseCpuList("5"), ElementsAre(5));
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
  for (const char* bad : {"a", "3-1", "1-", "-1", "1,,2", "0-99999999", "1;2"}) {
    EXPECT_THAT(ParseCpuList(bad), IsEmpty()) << bad;
  }
}

TEST(OwnCpus, AreAscendingAndSome) {
  const auto own = OwnCpus();
  EXPECT_FALSE(own.empty());
  EXPECT_TRUE(std::is_sorted(own.begin(), own.end()));
}

class NumaTest : public testing::Test {
 protected:
  NumaTest() {
    std::string name = std::filesystem::temp_directory_path() / "muster-numa-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    root_ = name + "/";
    Write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    Write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    Device("0000:17:00.0", "0");
    Device("0000:9a:00.0", "1");
    Device("0000:ab:00.0", "1");
  }
  ~NumaTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void Device(const std::string& address, const std::string& node) {
    Write("sys/bus/pci/devices/" + address + "/numa_node", node + "\n");
    Write("sys/bus/pci/drivers/nvidia/" + address + "/x", "");
  }
  std::vector<uint32_t> Bind(uint32_t device, const std::string& own) {
    return CpusToBind(device, ParseCpuList(own), root_);
  }

  std::string root_;
};

TEST_F(NumaTest, ARankGetsItsDevicesNode) {
  Write("sys/bus/pci/drivers/nvidia/module", "no device");
  EXPECT_THAT(Bind(0, "0-15"), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11));
  EXPECT_THAT(Bind(2, "0-15"), ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_THAT(Bind(3, "0-15"), IsEmpty());  // no such device
}

TEST_F(NumaTest, OnlyWhatTheDaemonMayUse) {
  EXPECT_THAT(Bind(1, "2-5"), ElementsAre(4, 5));
  EXPECT_THAT(Bind(1, "0-3"), IsEmpty());  // a cpuset on the other node: better far than nowhere
  EXPECT_THAT(Bind(1, "4-6"), IsEmpty());  // all that there are
}

TEST_F(NumaTest, InAContainerItsOwnDevicesCount) {
  Write("proc/driver/nvidia/gpus/0000:9a:00.0/information", "");
  EXPECT_THAT(Bind(0, "0-15"), ElementsAre(4, 5, 6, 7, 12, 13, 14, 15));
}

TEST_F(NumaTest, AnUnknownNodeBindsNothing) {
  Device("0000:17:00.0", "-1");
  EXPECT_THAT(Bind(0, "0-15"), IsEmpty());
  std::filesystem::remove_all(root_ + "sys/devices");
  EXPECT_THAT(Bind(1, "0-15"), IsEmpty());
  std::filesystem::remove_all(root_ + "sys");
  EXPECT_THAT(Bind(1, "0-15"), IsEmpty());
}

}  // namespace
}  // namespace muster::facts
