#include "trainer/parallel/gloo.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "common/unique_fd.h"
#include "trainer/config/error.h"
#include "trainer/parallel/single_rank.h"

namespace muster::parallel {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// A socket that listens on a free loopback port.
UniqueFd Listen(int& port) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t length = sizeof address;
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(listen(fd.get(), 1), 0);
  EXPECT_EQ(getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  port = ntohs(address.sin_port);
  return fd;
}

int FreePort() {
  int port = 0;
  Listen(port);
  return port;
}

// Runs `body` as each rank of a group, a thread each; the first failure is thrown again.
void RunRanks(int64_t world, GlooOptions options, const std::function<void(Communicator&)>& body) {
  options.world_size = world;
  options.master_port = FreePort();
  if (options.master_addr.empty()) options.master_addr = "127.0.0.2";
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> failures(static_cast<size_t>(world));
  for (int64_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        GlooOptions mine = options;
        mine.rank = rank;
        const auto comm = ConnectGloo(mine);
        body(*comm);
        comm->Barrier();
      } catch (...) {
        failures[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

void CheckCollectives(Communicator& comm) {
  const double rank = static_cast<double>(comm.rank());
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kLong}) {
    at::Tensor sum = at::full({5}, rank + 1, dtype);
    comm.AllReduce(sum, ReduceOp::kSum);
    EXPECT_TRUE(at::equal(sum, at::full({5}, 6, dtype)));
    at::Tensor max = at::full({5}, rank, dtype);
    comm.AllReduce(max, ReduceOp::kMax);
    EXPECT_TRUE(at::equal(max, at::full({5}, 2, dtype)));
  }
  at::Tensor text = at::full({4}, rank);
  comm.Broadcast(text, 1);
  EXPECT_TRUE(at::equal(text, at::full({4}, 1.0)));

  at::Tensor gathered = at::zeros({6});
  comm.AllGather(gathered, at::full({2}, rank));
  EXPECT_TRUE(at::equal(gathered.view({3, 2}).select(1, 0), at::arange(3, at::kFloat)));

  at::Tensor slice = at::zeros({2});
  comm.ReduceScatter(slice, at::arange(6, at::kFloat));
  EXPECT_TRUE(at::equal(slice, at::arange(6, at::kFloat).narrow(0, 2 * comm.rank(), 2).mul(3)));

  // Elements count, not dimensions.
  at::Tensor stacked = at::zeros({3, 2, 2});
  comm.AllGather(stacked, at::full({2, 2}, rank));
  EXPECT_TRUE(at::equal(stacked.select(2, 1).select(1, 1), at::arange(3, at::kFloat)));
  at::Tensor square = at::zeros({2, 2});
  comm.ReduceScatter(square, at::arange(12, at::kFloat).view({3, 2, 2}));
  EXPECT_TRUE(at::equal(square, at::arange(12, at::kFloat).view({3, 2, 2})[comm.rank()].mul(3)));
}

void CheckMessages(Communicator& comm) {
  const int64_t next = (comm.rank() + 1) % comm.size();
  const int64_t before = (comm.rank() + comm.size() - 1) % comm.size();
  // A ring, with messages that no buffer on the way can hold.
  const at::Tensor sent = at::full({1 << 20}, static_cast<double>(comm.rank()), at::kFloat);
  at::Tensor got = at::zeros({1 << 20}, at::kFloat);
  comm.SendReceive(sent, next, got, before);
  EXPECT_TRUE(at::equal(got, at::full({1 << 20}, static_cast<double>(before), at::kFloat)));
  // Two ranks alone, in the order of the calls.
  if (comm.rank() > 1) return;
  for (int64_t i = 0; i < 5; ++i) {
    at::Tensor message = at::full({i + 1}, i, at::kLong);
    if (comm.rank() == 0) {
      comm.Send(message, 1);
    } else {
      comm.Receive(message.zero_(), 0);
      EXPECT_TRUE(at::equal(message, at::full({i + 1}, i, at::kLong)));
    }
  }
}

TEST(Gloo, Messages) {
  RunRanks(3, {}, CheckMessages);
}

TEST(Gloo, Collectives) {
  RunRanks(3, {}, CheckCollectives);
}

TEST(Gloo, CollectivesOverIpv6) {
  GlooOptions options;
  options.master_addr = "::1";
  RunRanks(3, options, CheckCollectives);
}

TEST(Gloo, CollectivesOverANamedInterface) {
  GlooOptions options;
  options.interface = "lo";
  RunRanks(3, options, CheckCollectives);
}

TEST(Gloo, ViewsAreRefused) {
  RunRanks(2, {}, [](Communicator& comm) {
    const at::Tensor view = at::zeros({4, 4}).narrow(1, 0, 2);
    EXPECT_THROW(comm.Broadcast(view, 0), std::invalid_argument);
    EXPECT_THROW(comm.AllReduce(view, ReduceOp::kSum), std::invalid_argument);
  });
}

TEST(Gloo, AllReduceIsTheSameOnEveryRankAndEveryTime) {
  std::vector<at::Tensor> results(8);
  for (int round = 0; round < 2; ++round) {
    RunRanks(4, {}, [&](Communicator& comm) {
      at::Tensor x =
          at::arange(10001, at::kFloat).mul(0.1 + 0.01 * static_cast<double>(comm.rank())).sin();
      comm.AllReduce(x, ReduceOp::kSum);
      results[static_cast<size_t>(4 * round + comm.rank())] = x;
    });
  }
  for (const at::Tensor& result : results) EXPECT_TRUE(at::equal(result, results[0]));
}

TEST(Gloo, APeerThatLeavesIsNoticedAtOnce) {
  const auto start = steady_clock::now();
  EXPECT_THROW(RunRanks(3, {},
                        [](Communicator& comm) {
                          if (comm.rank() == 1) throw std::runtime_error("gone");
                          at::Tensor x = at::zeros({1000});
                          for (int i = 0; i < 10; ++i) comm.AllReduce(x, ReduceOp::kSum);
                        }),
               CommError);
  EXPECT_LT(steady_clock::now() - start, seconds(10));
}

TEST(Gloo, APeerThatHangsMeetsTheTimeout) {
  GlooOptions options;
  options.timeout = milliseconds(1500);
  EXPECT_THROW(RunRanks(2, options,
                        [](Communicator& comm) {
                          if (comm.rank() == 1) std::this_thread::sleep_for(seconds(3));
                          at::Tensor x = at::zeros({10});
                          comm.AllReduce(x, ReduceOp::kSum);
                        }),
               CommError);
}

std::string ConnectError(const GlooOptions& options) {
  try {
    ConnectGloo(options);
  } catch (const CommError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Gloo, APortThatIsTakenIsNamed) {
  GlooOptions options;
  options.master_addr = "127.0.0.1";
  options.world_size = 2;
  options.timeout = milliseconds(1000);
  int port = 0;
  const UniqueFd holder = Listen(port);
  options.master_port = port;
  EXPECT_THAT(ConnectError(options), testing::HasSubstr("port " + std::to_string(port)));
}

TEST(Gloo, NoMasterIsNamed) {
  GlooOptions options;
  options.master_addr = "127.0.0.1";
  options.master_port = FreePort();
  options.rank = 1;
  options.world_size = 2;
  options.timeout = milliseconds(1000);
  EXPECT_THAT(ConnectError(options), testing::HasSubstr("is rank 0 running"));
}

TEST(SingleRank, CollectivesAreTheIdentity) {
  SingleRank comm;
  at::Tensor x = at::arange(4, at::kFloat);
  comm.AllReduce(x, ReduceOp::kSum);
  comm.Broadcast(x, 0);
  at::Tensor y = at::zeros({4});
  comm.AllGather(y, x);
  EXPECT_TRUE(at::equal(x, y));
  at::Tensor z = at::zeros({4});
  comm.ReduceScatter(z, y);
  EXPECT_TRUE(at::equal(z, x));
  comm.SendReceive(x, 0, z.zero_(), 0);
  EXPECT_TRUE(at::equal(z, x));
}

}  // namespace
}  // namespace muster::parallel
