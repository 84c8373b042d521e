// Which lines of the kernel's log matter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "worker/facts/kernel_log.h"

namespace muster::facts {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  const char* kind;
  uint32_t pid;
  const char* text;
};

TEST(ParseKernelText, KnowsWhatMayEndARank) {
  const Case cases[] = {
      {"oom", 4711,
       "Out of memory: Killed process 4711 (python3) total-vm:99kB, anon-rss:66kB, UID:1000"},
      {"oom", 812, "Memory cgroup out of memory: Killed process 812 (muster-train) total-vm:1kB"},
      {"oom", 99,
       "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/"
       "x,task=python3,pid=99,uid=0"},
      {"xid", 0,
       "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off"},
      {"xid", 4121, "NVRM: Xid (PCI:0000:3b:00): 31, pid=4121, name=python3, Ch 00000008"},
      {"segfault", 4259,
       "segv[4259]: segfault at 8 ip 00005643d8524750 sp 00007ffc8a2fec70 error 6"},
      {"segfault", 77,
       "traps: train[77] general protection fault ip:7f0 sp:7ff error:0 in libc.so.6"},
      {"ecc", 0, "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0"},
      {"machine check", 0, "mce: [Hardware Error]: Machine check events logged"},
      {"link", 0, "mlx5_core 0000:5e:00.0 ens3f0np0: Link down"},
      {"link", 0, "ixgbe 0000:01:00.0 eth2: NIC Link is Down"},
      {"disk", 0, "I/O error, dev nvme0n1, sector 2048 op 0x0:(READ) flags 0x0"},
      {"disk", 0, "nfs: server filer1 not responding, still trying"},
  };
  for (const Case& c : cases) {
    const auto fault = ParseKernelText(c.text);
    ASSERT_TRUE(fault) << c.text;
    EXPECT_EQ(fault->kind(), c.kind) << c.text;
    EXPECT_EQ(fault->pid(), c.pid) << c.text;
    EXPECT_EQ(fault->text(), c.text);
  }
  for (const char* text : {"usb 1-1: new device", "", "eth0: renamed from veth1", "Memory: 16G"}) {
    EXPECT_FALSE(ParseKernelText(text)) << text;
  }
}

TEST(ParseJournalLine, HasItsTime) {
  const auto fault =
      ParseJournalLine("1764417603.123456 node7 kernel: Out of memory: Killed process 5 (x)");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->realtime_ns(), 1764417603123456000);
  EXPECT_EQ(fault->pid(), 5u);
  EXPECT_FALSE(ParseJournalLine("1764417603.1 node7 sshd[1]: Out of memory: Killed process 5 (x)"));
}

TEST(LookAtKernel, TakesWhatIsYoungEnough) {
  char folder[] = "/tmp/muster-kmsg-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string path = std::string(folder) + "/kmsg";
  timespec mono;
  timespec real;
  clock_gettime(CLOCK_MONOTONIC, &mono);
  clock_gettime(CLOCK_REALTIME, &real);
  const long now_us = mono.tv_sec * 1'000'000 + mono.tv_nsec / 1000;
  std::ofstream(path) << "3,1," << now_us - 600'000'000
                      << ",-;Out of memory: Killed process 1 (old)\n"
                      << " SUBSYSTEM=x\n"
                      << "3,2," << now_us << ",-;Out of memory: Killed process 2 (new)\n"
                      << "6,3," << now_us << ",-;usb 1-1: new device\n";
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  const v1::KernelLook look =
      LookAtKernel((real.tv_sec - 60) * int64_t{1'000'000'000}, path, {}, deadline);
  EXPECT_THAT(look.error(), IsEmpty());
  ASSERT_EQ(look.faults_size(), 1);
  EXPECT_EQ(look.faults(0).pid(), 2u);
  EXPECT_THAT(LookAtKernel(0, path + ".absent", {}, deadline).error(), HasSubstr("No such file"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace muster::facts
