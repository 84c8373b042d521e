// The shipped rules know real messages of the programs that write them.
#include <gtest/gtest.h>

#include <cctype>
#include <string>

#include "controller/why/rule_files.h"
#include "controller/why/why.h"

namespace muster::why {
namespace {

struct Case {
  const char* rule;
  const char* text;
  const char* cause = nullptr;  // if groups are filled in
};

// What a rank wrote.
const Case kLogCases[] = {
    {"device-out-of-memory",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
     "capacity of 79.11 GiB of which 17.19 MiB is free. Process 3411 has 79.09 GiB memory in use."},
    {"device-out-of-memory",
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.15 "
     "GiB total capacity; 76.41 GiB already allocated; 1.15 GiB free; 77.03 GiB reserved in total "
     "by PyTorch)"},
    {"device-out-of-memory", "RuntimeError: MUSA out of memory. Tried to allocate 512.00 MiB"},
    {"device-out-of-memory",
     "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
    {"device-fault", "RuntimeError: CUDA error: uncorrectable ECC error encountered"},
    {"illegal-access",
     "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
     "a kernel on the device failed: an illegal memory access was encountered"},
    {"driver-version", "Failed to initialize NVML: Driver/library version mismatch"},
    {"driver-version",
     "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please "
     "update your GPU driver"},
    {"driver-version",
     "RuntimeError: CUDA error: no kernel image is available for execution on the device"},
    {"bad-interface",
     "node7:4121:4121 [0] bootstrap.cc:64 NCCL WARN Bootstrap : no socket interface found"},
    {"bad-interface",
     "RuntimeError: [enforce fail at ../third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != "
     "nullptr. Unable to find address for: eth9"},
    {"collective-timeout",
     "[E1129 12:00:31.204 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
     "timeout: WorkNCCL(SeqNum=1207, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, "
     "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.",
     "a collective operation (ALLREDUCE) did not end in time: some rank did not take part"},
    {"collective-timeout",
     "[Rank 1] Watchdog caught collective operation timeout: WorkMCCL(SeqNum=12, "
     "OpType=_ALLGATHER_BASE, Timeout(ms)=1800000) ran for 1800718 milliseconds before timing out"},
    {"collective-timeout",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
     "waiting "
     "1800000ms for recv operation to complete",
     "a collective operation (recv) did not end in time: some rank did not take part"},
    {"rendezvous-timeout",
     "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 "
     "clients joined.",
     "the ranks did not find each other in time (1/2 clients joined)"},
    {"rendezvous-timeout",
     "RuntimeError: The client socket has timed out after 60000ms while trying to connect to "
     "(10.1.1.20, 29500)."},
    {"peer-gone",
     "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, remote process "
     "exited or there was a network error, NCCL version 2.28.9\nncclRemoteError: A call failed "
     "possibly due to a network error or a remote process exiting prematurely."},
    {"peer-gone",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Connection closed by peer "
     "[10.0.0.2]:41234"},
    {"unreachable", "OSError: [Errno 113] No route to host",
     "another host could not be reached: No route to host"},
    {"address-in-use", "OSError: [Errno 98] Address already in use"},
    {"address-in-use",
     "torch.distributed.DistNetworkError: The server socket has failed to listen on any local "
     "network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address "
     "already in use"},
    {"no-space", "OSError: [Errno 28] No space left on device: '/data/ckpt/iter_17.pt'",
     "a disk or quota is full /data/ckpt/iter_17.pt"},
    {"no-space", "cp: error writing 'x': No space left on device", "a disk or quota is full"},
    {"no-space", "OSError: [Errno 122] Disk quota exceeded"},
    {"shared-memory-full",
     "RuntimeError: DataLoader worker (pid 3921) is killed by signal: Bus error. It is possible "
     "that dataloader's workers are out of shared memory. Please try to raise your shared memory "
     "limit."},
    {"shared-memory-full",
     "node7:99:130 [1] include/shm.h:42 NCCL WARN Error: failed to extend /dev/shm/nccl-1Zk7xq to "
     "9637892 bytes"},
    {"shared-memory-full",
     "RuntimeError: unable to write to file </torch_4121_288>: No space left on device (28)"},
    {"missing-module", "ModuleNotFoundError: No module named 'megatron'",
     "the Python module megatron is not there"},
    {"missing-library",
     "ImportError: libcudart.so.12: cannot open shared object file: No such file or directory",
     "the shared library libcudart.so.12 is not found on this host"},
    {"missing-library",
     "/opt/train: error while loading shared libraries: libnccl.so.2: cannot open shared object "
     "file: No such file or directory",
     "the shared library libnccl.so.2 is not found on this host"},
    {"no-such-file", "FileNotFoundError: [Errno 2] No such file or directory: '/data/c4.idx'",
     "a file is not there: /data/c4.idx"},
    {"no-such-file",
     "python3: can't open file '/job/trian.py': [Errno 2] No such file or directory",
     "a file is not there: /job/trian.py"},
    {"no-such-file", "sh: 1: torchrn: command not found", "a file is not there: torchrn"},
    {"permission", "PermissionError: [Errno 13] Permission denied: '/data/out'",
     "the rank's user may not do that /data/out"},
    {"out-of-host-memory",
     "slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have "
     "been "
     "OOM Killed."},
    {"out-of-host-memory",
     "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't "
     "allocate memory: you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate "
     "memory)"},
    {"out-of-host-memory",
     "RuntimeError: DataLoader worker (pid(s) 812) is killed by signal: Killed."},
    {"out-of-host-memory", "MemoryError"},
    {"out-of-host-memory", "  what():  std::bad_alloc"},
    {"too-many-files", "OSError: [Errno 24] Too many open files: '/data/x'"},
    {"file-system-gone", "OSError: [Errno 116] Stale file handle: '/nfs/ckpt'",
     "a file system went away under the rank: Stale file handle"},
    {"not-a-number",
     "AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3, node: n1"},
    {"not-a-number",
     "ValueError: Rank 0, node n1, device 0, iteration 812: Unexpected result nan "
     "(message='found NaN in local grad norm for bucket #0 in backward pass before data-parallel "
     "communication collective')"},
    {"not-a-number", "ValueError: loss is nan at step 17"},
    {"not-a-number", "muster-train: rank 0: nan error: loss is not finite at iteration 3"},
    {"not-a-number",
     "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."},
    {"symbol-version",
     "ImportError: /venv/lib/libtorch_cuda.so: undefined symbol: ncclCommInitRankConfig",
     "two libraries of different versions do not fit each other (ncclCommInitRankConfig)"},
    {"symbol-version",
     "/opt/train: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by "
     "/opt/train)",
     "two libraries of different versions do not fit each other (GLIBC_2.38)"},
    {"symbol-version",
     "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major "
     "versions. PyTorch has CUDA Version=12.1"},
    {"bad-flags", "train.py: error: unrecognized arguments: --lr-dcay 3",
     "the program does not take its command line: --lr-dcay 3"},
};

const Case kKernelCases[] = {
    {"killed-for-memory",
     "Out of memory: Killed process 4711 (python3) total-vm:99123456kB, anon-rss:66012345kB, "
     "file-rss:0kB, shmem-rss:0kB, UID:1000 pgtables:130012kB oom_score_adj:0"},
    {"killed-for-memory",
     "Memory cgroup out of memory: Killed process 812 (muster-train) total-vm:1234kB"},
    {"killed-for-memory",
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,task_memcg=/"
     "muster-0/x,task=python3,pid=812,uid=0"},
    {"device-fault-kernel",
     "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the "
     "bus."},
    {"link-down", "mlx5_core 0000:5e:00.0 ens3f0np0: Link down",
     "a network link of this host went down"},
    {"link-down", "ixgbe 0000:01:00.0 eth2: NIC Link is Down"},
    {"disk-fault", "I/O error, dev nvme0n1, sector 2048 op 0x0:(READ) flags 0x0",
     "the kernel reports errors of a disk or file system nvme0n1"},
    {"machine-check", "mce: [Hardware Error]: Machine check events logged"},
};

v1::Job FailedJob(const std::string& kernel) {
  v1::Job job;
  job.set_state(v1::JOB_STATE_FAILED);
  job.mutable_outcome()->set_cause(v1::CAUSE_RANK_FAILED);
  job.mutable_outcome()->set_rank(0);
  v1::RankView& rank = *job.add_ranks();
  rank.set_host("n1");
  rank.mutable_status()->set_state(v1::RANK_STATE_EXITED);
  rank.mutable_status()->mutable_exit()->set_code(1);
  v1::NodeEnd& end = *job.add_ends();
  end.set_host("n1");
  if (!kernel.empty()) end.mutable_report()->mutable_kernel()->add_faults()->set_text(kernel);
  return job;
}

void Check(const Case& c, const Why& why) {
  ASSERT_FALSE(why.hints.empty()) << c.text;
  EXPECT_EQ(why.hints.front().rule, c.rule) << c.text << "\nfound: " << why.hints.front().found;
  if (c.cause != nullptr) {
    EXPECT_EQ(why.hints.front().cause, c.cause);
  }
  EXPECT_EQ(why.hints.front().cause.find('{'), std::string::npos) << why.hints.front().cause;
  EXPECT_EQ(why.hints.front().advice.find("{host}"), std::string::npos);
}

TEST(ShippedRules, KnowWhatProgramsSay) {
  const RuleSet rules = LoadRules({}, {});
  ASSERT_TRUE(rules.errors.empty()) << rules.errors.front();
  for (const Case& c : kLogCases) {
    Words words;
    words[0].tail = {{false, "step 3"}, {true, c.text}};
    Check(c, Explain(FailedJob(""), words, rules));
  }
}

TEST(ShippedRules, KnowWhatTheKernelSays) {
  const RuleSet rules = LoadRules({}, {});
  for (const Case& c : kKernelCases) Check(c, Explain(FailedJob(c.text), {}, rules));
}

TEST(ShippedRules, SayNothingAboutWhatIsNoFailure) {
  const RuleSet rules = LoadRules({}, {});
  Words words;
  words[0].tail = {
      {false, " iteration      20/     200 | consumed samples: 5120 | lm loss: 2.1E+00 |"},
      {false, "number of nan iterations:   0 | number of skipped iterations:   0 |"},
      {true, "[W ProcessGroupNCCL.cpp:4561] using GPU 0 to perform barrier"},
  };
  EXPECT_TRUE(Explain(FailedJob(""), words, rules).hints.empty());
}

TEST(ShippedRules, EachHasATextAboveANameAndAdvice) {
  const RuleSet rules = LoadRules({}, {});
  for (const Rule& rule : rules.rules) {
    EXPECT_FALSE(rule.name.empty()) << rule.place;
    EXPECT_FALSE(rule.advice.empty()) << rule.place;
    bool tested = false;
    for (const Case& c : kLogCases) tested = tested || rule.name == c.rule;
    for (const Case& c : kKernelCases) tested = tested || rule.name == c.rule;
    EXPECT_TRUE(tested) << rule.name << " has no text in this test";
  }
}

}  // namespace
}  // namespace muster::why
