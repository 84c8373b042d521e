#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/preflight/checks.h"

// Findings about devices, files, versions and limits.

namespace muster::preflight {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kGiB = uint64_t{1} << 30;

std::vector<NodeFacts> Healthy(int count = 3) {
  std::vector<NodeFacts> nodes;
  for (int i = 0; i < count; ++i) {
    NodeFacts& node = nodes.emplace_back();
    node.host = "n" + std::to_string(i + 1);
    node.devices = {0, 1};
    node.hello.set_boot_id("boot" + std::to_string(i));
    v1::ProbeResult& probe = node.probe;
    probe.set_received_ns(1);
    probe.set_memlock_bytes(~uint64_t{0});
    probe.set_nofile(1 << 20);
    for (uint32_t d = 0; d < 2; ++d) {
      v1::Device& device = *probe.add_devices();
      device.set_index(d);
      device.set_name("NVIDIA H100 80GB HBM3");
      device.set_driver("535.183.06");
      device.set_memory_total_bytes(80 * kGiB);
      device.set_memory_used_bytes(kGiB / 100);
    }
    for (const char* path : {"/var/tmp/muster-0", "/dev/shm", "/ckpt"}) {
      v1::FolderFact& folder = *probe.add_folders();
      folder.set_path(path);
      folder.set_free_bytes(100 * kGiB);
      folder.set_total_bytes(200 * kGiB);
    }
  }
  return nodes;
}

std::vector<Finding> Find(const std::vector<NodeFacts>& nodes) {
  Options options;
  options.program = "python3";
  return Check(nodes, options);
}

auto Is(Severity severity, const std::string& check, const std::string& host,
        const std::string& value, const std::string& fix = "") {
  return AllOf(Field(&Finding::severity, severity), Field(&Finding::check, check),
               Field(&Finding::host, host), Field(&Finding::value, HasSubstr(value)),
               Field(&Finding::fix, HasSubstr(fix)));
}

TEST(NodeChecks, HealthyNodesGiveNone) {
  EXPECT_THAT(Find(Healthy()), IsEmpty());
}

TEST(NodeChecks, ADeviceInUseNamesTheHolder) {
  auto nodes = Healthy();
  v1::Device& device = *nodes[1].probe.mutable_devices(1);
  device.set_memory_used_bytes(60 * kGiB);
  v1::DeviceHolder& holder = *device.add_holders();
  holder.set_pid(4711);
  holder.set_user("alice");
  holder.set_command("python train.py");
  EXPECT_THAT(Find(nodes),
              ElementsAre(Is(Severity::kError, "device_memory", "n2",
                             "device 1: 60.0 GiB of 80.0 GiB in use by pid 4711 (alice: python "
                             "train.py)",
                             "on n2: kill 4711")));
  device.set_memory_used_bytes(3 * kGiB);
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kWarning, "device_memory", "n2", "3.0 GiB")));
  nodes[1].devices = {0};  // the plan leaves that device alone
  EXPECT_THAT(Find(nodes), IsEmpty());
}

TEST(NodeChecks, OnlyHoldersOfThisNamespaceCanBeKilledByTheirPid) {
  auto nodes = Healthy();
  v1::Device& device = *nodes[1].probe.mutable_devices(1);
  device.set_memory_used_bytes(60 * kGiB);
  device.add_holders()->set_pid(17);  // nobody knows its user: of another container
  auto findings = Find(nodes);
  ASSERT_THAT(findings, ElementsAre(Is(Severity::kError, "device_memory", "n2",
                                       "in another container", "fuser -v /dev/nvidia1")));
  EXPECT_THAT(findings[0].fix, Not(HasSubstr("kill")));
  v1::DeviceHolder& known = *device.add_holders();
  known.set_pid(4711);
  known.set_user("alice");
  findings = Find(nodes);
  ASSERT_THAT(findings, ElementsAre(Is(Severity::kError, "device_memory", "n2", "pid 17",
                                       "kill 4711; for the others")));
}

TEST(NodeChecks, NoDevicesAnywhereForAJobThatNeedsThem) {
  auto nodes = Healthy(2);
  for (auto& node : nodes) node.probe.clear_devices();
  EXPECT_THAT(Find(nodes), IsEmpty()) << "ranks run on the processors";
  nodes[1].needs_devices = true;
  const auto findings = Find(nodes);
  ASSERT_THAT(findings, ElementsAre(Is(Severity::kError, "devices", "n2", "only 0 were found",
                                       "must list the devices")));
  EXPECT_EQ(findings[0].majority, "") << "nothing to go by";
}

TEST(NodeChecks, ToolsThatFail) {
  auto nodes = Healthy();
  nodes[0].probe.clear_devices();
  nodes[0].probe.set_device_error("Failed to initialize NVML: Driver/library version mismatch");
  nodes[2].probe.clear_devices();
  nodes[2].probe.set_device_error("no answer within 5000 ms");
  EXPECT_THAT(Find(nodes),
              ElementsAre(Is(Severity::kError, "devices", "n1", "version mismatch", "reboot n1"),
                          Is(Severity::kError, "devices", "n3", "no answer", "xid")));
}

TEST(NodeChecks, AHostWithoutDevicesAmongOthers) {
  auto nodes = Healthy();
  nodes[1].probe.clear_devices();
  const auto findings = Find(nodes);
  EXPECT_THAT(findings, ElementsAre(Is(Severity::kError, "devices", "n2", "only 0 were found")));
  EXPECT_EQ(findings[0].majority, "2 devices");
}

TEST(NodeChecks, SickDevices) {
  auto nodes = Healthy();
  nodes[0].probe.mutable_devices(0)->set_ecc_uncorrected(3);
  nodes[1].probe.mutable_devices(1)->set_throttle_reasons(0x48);
  nodes[1].probe.mutable_devices(0)->set_throttle_reasons(0x5);  // idle, power cap: no fault
  nodes[2].probe.mutable_devices(1)->set_mig(true);
  for (int i = 0; i < 2; ++i) {
    v1::KernelFault& fault = *nodes[2].probe.add_kernel_faults();
    fault.set_xid(79);
    fault.set_bus_id("0000:3b:00");
    fault.set_text("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.");
  }
  v1::KernelFault& program = *nodes[2].probe.add_kernel_faults();
  program.set_xid(43);
  program.set_bus_id("0000:19:00");
  EXPECT_THAT(
      Find(nodes),
      ElementsAre(Is(Severity::kWarning, "device_health", "n1", "3 uncorrected ECC", "-r -i 0"),
                  Is(Severity::kWarning, "device_health", "n2", "device 1: its clocks are held"),
                  Is(Severity::kWarning, "device_health", "n3", "MIG", "-mig 0 -i 1"),
                  Is(Severity::kWarning, "device_health", "n3", "Xid 79 (the device has fallen"),
                  Is(Severity::kNote, "device_health", "n3", "Xid 43")));
}

TEST(NodeChecks, DriversAndTypesAgainstTheMajority) {
  auto nodes = Healthy();
  nodes[2].probe.mutable_devices(0)->set_driver("525.0");
  nodes[0].probe.mutable_devices(0)->set_name("NVIDIA A100");
  const auto findings = Find(nodes);
  EXPECT_THAT(findings, ElementsAre(Is(Severity::kWarning, "driver", "n3", "driver 525.0"),
                                    Is(Severity::kWarning, "driver", "n1", "NVIDIA A100")));
  EXPECT_EQ(findings[0].majority, "driver 535.183.06");
}

TEST(NodeChecks, AllDevicesOfAHostAreCompared) {
  auto nodes = Healthy();
  nodes[1].probe.mutable_devices(1)->set_name("NVIDIA A100");
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kWarning, "driver", "n2",
                                          "NVIDIA A100, NVIDIA H100 80GB HBM3")));
  nodes[1].devices = {0};  // the plan leaves that device alone
  EXPECT_THAT(Find(nodes), IsEmpty());
}

TEST(NodeChecks, MemlockOfADaemonMattersOverRdma) {
  auto nodes = Healthy();
  for (auto& node : nodes) {
    v1::RdmaPort& port = *node.probe.add_rdma();
    port.set_device("mlx5_0");
    port.set_port(1);
    port.set_state("ACTIVE");
  }
  nodes[1].probe.set_memlock_bytes(64 << 10);
  nodes[2].probe.mutable_rdma(0)->set_state("DOWN");
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "limits", "n2", "lock only 64 KiB",
                                          "LimitMEMLOCK=infinity"),
                                       Is(Severity::kWarning, "rdma", "n3", "mlx5_0/1 DOWN")));
  for (auto& node : nodes) node.probe.clear_rdma();
  EXPECT_THAT(Find(nodes), IsEmpty()) << "without RDMA nobody pins that much";
}

TEST(NodeChecks, FewFilesAndLittleSharedMemory) {
  auto nodes = Healthy();
  nodes[0].probe.set_nofile(1024);
  nodes[1].probe.mutable_folders(1)->set_total_bytes(64 << 20);
  EXPECT_THAT(Find(nodes),
              ElementsAre(Is(Severity::kWarning, "shm", "n2", "only 64 MiB", "--shm-size"),
                          Is(Severity::kWarning, "limits", "n1", "only 1024 files")));
}

TEST(NodeChecks, DisksAndFolders) {
  auto nodes = Healthy();
  nodes[0].probe.mutable_folders(0)->set_free_bytes(5 << 20);
  nodes[1].probe.mutable_folders(2)->set_error("/: Permission denied");
  nodes[2].probe.mutable_folders(2)->set_timed_out(true);
  nodes[2].probe.mutable_folders(2)->set_error("/ckpt: no answer within 5000 ms");
  EXPECT_THAT(Find(nodes),
              ElementsAre(Is(Severity::kError, "disk", "n2", "can't write to /ckpt"),
                          Is(Severity::kError, "disk", "n3", "/ckpt: no answer", "hangs"),
                          Is(Severity::kWarning, "disk", "n1", "only 5 MiB are free for logs")));
}

TEST(NodeChecks, ProgramsAreComparedByTheirContent) {
  auto nodes = Healthy();
  for (auto& node : nodes) {
    node.probe.set_program_path("/opt/train");
    node.probe.mutable_program()->set_path("/opt/train");
    node.probe.mutable_program()->set_size(100);
    node.probe.mutable_program()->set_sum(std::string(64, 'a'));
  }
  nodes[1].probe.mutable_program()->set_sum(std::string(64, 'b'));
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "program", "n2",
                                          "100 bytes, sha256 bbbbbbbbbbbb", "same build")));
}

TEST(NodeChecks, PythonAndTorch) {
  auto nodes = Healthy(4);
  for (auto& node : nodes) {
    node.probe.set_program_path("/usr/bin/python3");
    node.probe.mutable_python()->set_version("3.11.2");
    node.probe.mutable_python()->set_torch("2.11.0");
    node.probe.mutable_python()->set_nccl("2.28.9");
  }
  EXPECT_THAT(Find(nodes), IsEmpty());
  nodes[1].probe.mutable_python()->set_torch("2.10.0");
  nodes[2].probe.mutable_python()->clear_torch();
  nodes[3].probe.mutable_python()->set_version("3.12.1");
  nodes[0].probe.mutable_python()->set_error("it ends with 1: No module named encodings");
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "python", "n1", "encodings"),
                                       Is(Severity::kError, "python", "n2", "PyTorch 2.10.0"),
                                       Is(Severity::kError, "python", "n3", "no PyTorch"),
                                       Is(Severity::kWarning, "python", "n4", "Python 3.12.1")));
}

v1::FileFact File(const std::string& path, uint64_t size, char sum) {
  v1::FileFact file;
  file.set_path(path);
  file.set_size(size);
  file.set_sum(std::string(64, sum));
  return file;
}

TEST(NodeChecks, OtherContentOfTheSameSize) {
  auto nodes = Healthy();
  for (auto& node : nodes) *node.probe.add_files() = File("/data/x.bin", 100, 'a');
  nodes[2].probe.mutable_files(0)->set_sum(std::string(64, 'b'));
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "files", "n3",
                                          "/data/x.bin: 100 bytes too, but other content")));
}

TEST(NodeChecks, AFileSystemThatHangs) {
  auto nodes = Healthy();
  for (auto& node : nodes) *node.probe.add_files() = File("/nfs/x.bin", 100, 'a');
  nodes[1].probe.mutable_files(0)->set_timed_out(true);
  nodes[1].probe.mutable_files(0)->set_error("/nfs/x.bin: no answer within 5000 ms");
  EXPECT_THAT(Find(nodes),
              ElementsAre(Is(Severity::kError, "files", "n2", "/nfs/x.bin: no answer", "umount")));
}

TEST(NodeChecks, WordsOfTheCommandThatAreFilesOnMostHosts) {
  auto nodes = Healthy();
  for (int i : {0, 1})
    *nodes[static_cast<size_t>(i)].probe.add_optional_files() = File("/d", 9, 'a');
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "files", "n3", "/d: is not there")));
  nodes[1].probe.clear_optional_files();
  EXPECT_THAT(Find(nodes), IsEmpty()) << "on one host only: an output perhaps";
  *nodes[1].probe.add_optional_files() = File("/d", 10, 'a');
  *nodes[2].probe.add_optional_files() = File("/d", 9, 'a');
  EXPECT_THAT(Find(nodes), ElementsAre(Is(Severity::kError, "files", "n2", "/d: 10 bytes")));
}

TEST(NodeChecks, WorstComesFirst) {
  auto nodes = Healthy();
  nodes[0].clock = ClockOffset{9'000'000'000, 1'000};
  nodes[2].absent = "did not say hello within 10 s";
  const auto findings = Find(nodes);
  EXPECT_THAT(findings, ElementsAre(Is(Severity::kError, "connect", "n3", "did not say hello"),
                                    Is(Severity::kWarning, "clock", "n1", "9000 ms ahead")));
}

TEST(ClockOffset, LeavesOutTheTimeOfTheAnswer) {
  // Sent at 100, there at 1160 on the node's clock (offset 1050, 10 under way), answered after 500.
  const ClockOffset offset = OffsetOf(100, 1'160, 1'660, 620);
  EXPECT_EQ(offset.offset_ns, 1'050);
  EXPECT_EQ(offset.uncertainty_ns, 10);
}

}  // namespace
}  // namespace muster::preflight
