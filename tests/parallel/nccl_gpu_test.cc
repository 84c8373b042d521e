#include "trainer/parallel/nccl.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "trainer/config/error.h"
#include "trainer/parallel/gloo.h"
#include "trainer/parallel/single_rank.h"

// Ranks are processes of this program (NCCL wants one device each): the test starts itself again
// with the rank in the environment.

namespace muster::parallel {
namespace {

using std::chrono::seconds;

int Devices() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

at::Tensor Full(std::initializer_list<int64_t> shape, double value, at::ScalarType type,
                const at::Device& device) {
  return at::full(shape, value, at::TensorOptions().dtype(type).device(device));
}

void CheckAll(Communicator& comm, const at::Device& device) {
  const double rank = static_cast<double>(comm.rank());
  const auto n = static_cast<double>(comm.size());
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong}) {
    at::Tensor sum = Full({5}, rank + 1, type, device);
    comm.AllReduce(sum, ReduceOp::kSum);
    EXPECT_TRUE(at::equal(sum, Full({5}, n * (n + 1) / 2, type, device)));
    at::Tensor max = Full({5}, rank, type, device);
    comm.AllReduce(max, ReduceOp::kMax);
    EXPECT_TRUE(at::equal(max, Full({5}, n - 1, type, device)));
  }
  at::Tensor text = Full({4}, rank, at::kFloat, device);
  comm.Broadcast(text, comm.size() - 1);
  EXPECT_TRUE(at::equal(text, Full({4}, n - 1, at::kFloat, device)));

  at::Tensor gathered = Full({2 * comm.size()}, -1, at::kFloat, device);
  comm.AllGather(gathered, Full({2}, rank, at::kFloat, device));
  const at::Tensor ranks = at::arange(comm.size(), at::kFloat).to(device);
  EXPECT_TRUE(at::equal(gathered.view({comm.size(), 2}).select(1, 0), ranks));

  at::Tensor slice = Full({2}, -1, at::kFloat, device);
  const at::Tensor whole = at::arange(2 * comm.size(), at::kFloat).to(device);
  comm.ReduceScatter(slice, whole);
  EXPECT_TRUE(at::equal(slice, whole.narrow(0, 2 * comm.rank(), 2).mul(n)));

  const int64_t next = (comm.rank() + 1) % comm.size();
  const int64_t before = (comm.rank() + comm.size() - 1) % comm.size();
  at::Tensor got = Full({1 << 20}, -1, at::kFloat, device);
  comm.SendReceive(Full({1 << 20}, rank, at::kFloat, device), next, got, before);
  EXPECT_TRUE(at::equal(got, Full({1 << 20}, static_cast<double>(before), at::kFloat, device)));
  comm.Barrier();
  comm.Synchronize();
}

void CheckRefusals(Communicator& comm, const at::Device& device) {
  const at::Tensor view = Full({4, 4}, 0, at::kFloat, device).narrow(1, 0, 2);
  EXPECT_THROW(comm.Broadcast(view, 0), std::invalid_argument);
  EXPECT_THROW(comm.AllReduce(at::zeros({4}), ReduceOp::kSum), std::invalid_argument);
  EXPECT_THROW(comm.AllGather(Full({3}, 0, at::kFloat, device), Full({2}, 0, at::kFloat, device)),
               std::invalid_argument);
}

TEST(Nccl, AGroupOfOne) {
  if (Devices() < 1) GTEST_SKIP() << "needs a GPU";
  SingleRank control;
  const auto comm = ConnectNccl(control, 0, seconds(60));
  CheckAll(*comm, at::Device(at::kCUDA, 0));
  CheckRefusals(*comm, at::Device(at::kCUDA, 0));
}

// In its own process: rank `rank` of two, with its own device.
int RunRank(int64_t rank, int port, bool leaves) {
  GlooOptions gloo;
  gloo.master_addr = "127.0.0.1";
  gloo.master_port = port;
  gloo.rank = rank;
  gloo.world_size = 2;
  gloo.timeout = seconds(60);
  const auto control = ConnectGloo(gloo);
  const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(rank));
  const auto comm = ConnectNccl(*control, static_cast<int>(rank), seconds(leaves ? 5 : 60));
  CheckAll(*comm, device);
  if (!leaves) return testing::Test::HasFailure() ? 1 : 0;
  if (rank == 1) _exit(0);
  // The peer is gone: an error, not a wait for ever; and every further call throws at once.
  at::Tensor x = Full({1 << 22}, 1, at::kFloat, device);
  try {
    for (int i = 0; i < 100; ++i) {
      comm->AllReduce(x, ReduceOp::kSum);
      comm->Synchronize();
    }
  } catch (const CommError&) {
    EXPECT_THROW(comm->AllReduce(x, ReduceOp::kSum), CommError);
    return testing::Test::HasFailure() ? 1 : 0;
  }
  return 2;
}

// Starts both ranks anew and waits for them; the exit codes.
std::vector<int> RunTwo(const char* mode) {
  const std::string port = std::to_string(20000 + getpid() % 10000);
  std::vector<pid_t> pids;
  for (const char* rank : {"0", "1"}) {
    const pid_t pid = fork();
    if (pid == 0) {
      setenv("NCCL_TEST_RANK", rank, 1);
      setenv("NCCL_TEST_PORT", port.c_str(), 1);
      setenv("NCCL_TEST_MODE", mode, 1);
      execl("/proc/self/exe", "muster_parallel_gpu_test", "--gtest_filter=Nccl.Rank", nullptr);
      _exit(99);
    }
    pids.push_back(pid);
  }
  std::vector<int> codes;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
  }
  return codes;
}

TEST(Nccl, Rank) {
  const char* rank = getenv("NCCL_TEST_RANK");
  if (rank == nullptr) GTEST_SKIP() << "part of the tests of two ranks";
  const int code = RunRank(atoi(rank), atoi(getenv("NCCL_TEST_PORT")),
                           std::string(getenv("NCCL_TEST_MODE")) == "leaves");
  std::fflush(nullptr);
  _exit(code);
}

TEST(Nccl, TwoRanks) {
  if (Devices() < 2) GTEST_SKIP() << "needs two GPUs";
  EXPECT_THAT(RunTwo("stays"), testing::ElementsAre(0, 0));
}

TEST(Nccl, APeerThatLeavesIsNoticed) {
  if (Devices() < 2) GTEST_SKIP() << "needs two GPUs";
  EXPECT_THAT(RunTwo("leaves"), testing::ElementsAre(0, 0));
}

}  // namespace
}  // namespace muster::parallel
