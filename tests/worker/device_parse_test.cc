#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "worker/facts/devices.h"

// Parsers over recorded outputs (tests/golden/devices).

namespace muster::facts {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kMiB = 1 << 20;

std::string Golden(const std::string& name) {
  const char* root = std::getenv("MUSTER_GOLDEN");
  std::ifstream file(std::string(root == nullptr ? "tests/golden" : root) + "/devices/" + name);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<v1::Device> Gpus(const std::string& name) {
  return ParseGpus(Golden(name), NvidiaFields(), "cuda");
}

ToolOutput Says(int code, const std::string& out) {
  ToolOutput output;
  output.exit_code = code;
  output.out = out;
  return output;
}

TEST(NvidiaSmi, AnIdleDevice) {
  const auto devices = Gpus("h200_idle.csv");
  ASSERT_THAT(devices, SizeIs(1));
  const v1::Device& device = devices[0];
  EXPECT_EQ(device.index(), 0u);
  EXPECT_EQ(device.kind(), "cuda");
  EXPECT_EQ(device.name(), "NVIDIA H200");
  EXPECT_EQ(device.uuid(), "GPU-aedfc982-8400-7c42-14fb-e39ef3a27d40");
  EXPECT_EQ(device.bus_id(), "00000000:00:06.0");
  EXPECT_EQ(device.driver(), "580.159.04");
  EXPECT_EQ(device.memory_total_bytes(), 143771 * kMiB);
  EXPECT_EQ(device.memory_used_bytes(), 0u);
  EXPECT_EQ(device.ecc_uncorrected(), 0u);
  EXPECT_TRUE(device.has_ecc_uncorrected());
  EXPECT_EQ(device.throttle_reasons(), 1u);
  EXPECT_FALSE(device.mig());
}

TEST(NvidiaSmi, HoldersBelongToTheirDevice) {
  auto devices = Gpus("h200_idle.csv");
  AddHolders(Golden("h200_apps.csv"), devices);
  ASSERT_THAT(devices[0].holders(), SizeIs(1));
  EXPECT_EQ(devices[0].holders(0).pid(), 417u);
  EXPECT_EQ(devices[0].holders(0).command(), "python3");
  EXPECT_EQ(devices[0].holders(0).memory_bytes(), 2658 * kMiB);
  devices = Gpus("h200_idle.csv");
  AddHolders(Golden("no_apps.csv"), devices);
  EXPECT_THAT(devices[0].holders(), IsEmpty());
}

TEST(NvidiaSmi, EightDevicesOfWhichTwoAreIll) {
  auto devices = Gpus("eight_h100.csv");
  ASSERT_THAT(devices, SizeIs(8));
  AddHolders(Golden("eight_h100_apps.csv"), devices);
  EXPECT_EQ(devices[2].ecc_uncorrected(), 3u);
  EXPECT_EQ(devices[5].throttle_reasons(), 0x48u);
  EXPECT_THAT(devices[0].holders(), IsEmpty());
  ASSERT_THAT(devices[7].holders(), SizeIs(2));
  EXPECT_EQ(devices[7].holders(0).command(), "pt_data_worker, train");
  EXPECT_EQ(devices[7].holders(0).memory_bytes(), 19990 * kMiB);
  EXPECT_EQ(devices[7].holders(1).command(), "");  // in another pid namespace
}

TEST(NvidiaSmi, Mig) {
  auto devices = Gpus("a100_mig.csv");
  ASSERT_THAT(devices, SizeIs(2));
  AddHolders(Golden("a100_mig_apps.csv"), devices);
  EXPECT_TRUE(devices[0].mig());
  EXPECT_EQ(devices[0].memory_used_bytes(), 0u);
  EXPECT_FALSE(devices[0].has_throttle_reasons());
  ASSERT_THAT(devices[0].holders(), SizeIs(1));
  EXPECT_EQ(devices[0].holders(0).memory_bytes(), 0u);
  EXPECT_FALSE(devices[1].mig());
}

TEST(NvidiaSmi, ValuesThatAreNotThere) {
  const auto devices = Gpus("na_fields.csv");
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].memory_total_bytes(), 0u);
  EXPECT_FALSE(devices[0].has_ecc_uncorrected());
  EXPECT_EQ(devices[1].memory_total_bytes(), 24564 * kMiB);
  EXPECT_EQ(devices[1].memory_used_bytes(), 0u);
  EXPECT_FALSE(devices[1].has_throttle_reasons());
}

TEST(NvidiaSmi, ALostDeviceIsNotThere) {
  const auto devices = Gpus("err.csv");
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].index(), 0u);
  EXPECT_EQ(devices[1].index(), 2u);
}

TEST(NvidiaSmi, ACutLineIsNoDevice) {
  EXPECT_THAT(Gpus("truncated.csv"), SizeIs(1));
  EXPECT_THAT(ParseGpus("", NvidiaFields(), "cuda"), IsEmpty());
}

TEST(NvidiaSmi, ErrorsInItsOwnWords) {
  EXPECT_EQ(ToolError(Says(18, Golden("version_mismatch.txt"))),
            "Failed to initialize NVML: Driver/library version mismatch NVML library version: "
            "580.95");
  EXPECT_THAT(ToolError(Says(9, Golden("no_driver.txt"))), HasSubstr("couldn't communicate"));
  EXPECT_EQ(ToolError(Says(6, Golden("no_devices.txt"))), "");
  EXPECT_EQ(ToolError(Says(0, Golden("h200_idle.csv"))), "");
  EXPECT_EQ(ToolError(Says(3, "")), "it ends with 3");
  EXPECT_THAT(ParseGpus(Golden("version_mismatch.txt"), NvidiaFields(), "cuda"), IsEmpty());
}

TEST(NvidiaSmi, NonsenseIsNotTheSameAsNoDevices) {
  const auto error = [](const ToolOutput& output) {
    return NonsenseError(output, ParseGpus(output.out, NvidiaFields(), "cuda"));
  };
  EXPECT_EQ(error(Says(0, "\nWARNING: this is no nvidia-smi\nat all\n")),
            "its answer can't be read: 'WARNING: this is no nvidia-smi'");
  EXPECT_EQ(error(Says(0, "")), "");
  EXPECT_EQ(error(Says(0, Golden("no_devices.txt"))), "");
  EXPECT_EQ(error(Says(0, Golden("h200_idle.csv"))), "");
}

TEST(NvidiaSmi, NumbersThatCanNotBe) {
  const std::vector<std::string> fields = {"index", "uuid", "name", "memory.total"};
  const auto devices = ParseGpus(
      "99999999999, GPU-a, X, 1\n99999999999999999999999, GPU-a, X, 1\n"
      "7, GPU-b, X, 18446744073709551615\n",
      fields, "cuda");
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].index(), 7u);
  EXPECT_GT(devices[0].memory_total_bytes(), uint64_t{1} << 63);
  std::string many;
  for (int i = 0; i < 3001; ++i)
    many += std::to_string(i) + ", GPU-" + std::to_string(i) + ", X, 1\n";
  auto capped = ParseGpus(many, fields, "cuda");
  EXPECT_THAT(capped, SizeIs(256));
  std::string holders = "GPU-0, 4294967297, a, 1\n";
  for (int i = 0; i < 3001; ++i) holders += "GPU-0, " + std::to_string(i + 2) + ", a, 1\n";
  AddHolders(holders, capped);
  ASSERT_THAT(capped[0].holders(), SizeIs(64));
  EXPECT_EQ(capped[0].holders(0).pid(), 2u);
}

TEST(NvidiaSmi, AFieldThatItDoesNotKnow) {
  EXPECT_EQ(UnknownField(Golden("bad_field.txt")), "clocks_event_reasons.active");
  EXPECT_EQ(UnknownField(Golden("no_driver.txt")), "");
}

TEST(MthreadsGmi, QueryAndTable) {
  const auto queried = ParseGpus(Golden("mthreads_query.csv"), MusaFields(), "musa");
  ASSERT_THAT(queried, SizeIs(2));
  EXPECT_EQ(queried[0].name(), "MTT S5000");
  EXPECT_EQ(queried[0].memory_used_bytes(), 1024 * kMiB);
  const auto table = ParseMusaTable(Golden("mthreads_table.txt"));
  ASSERT_THAT(table, SizeIs(2));
  EXPECT_EQ(table[1].index(), 1u);
  EXPECT_EQ(table[1].kind(), "musa");
  EXPECT_EQ(table[1].name(), "MTT S4000");
  EXPECT_EQ(table[1].driver(), "2.7.0");
  EXPECT_EQ(table[1].bus_id(), "00000000:02:00.0");
  EXPECT_EQ(table[1].memory_used_bytes(), 40960 * kMiB);
  EXPECT_EQ(table[1].memory_total_bytes(), 49152 * kMiB);
  EXPECT_THAT(ParseMusaTable(Golden("no_devices.txt")), IsEmpty());
}

}  // namespace
}  // namespace muster::facts
