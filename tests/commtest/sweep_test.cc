#include "trainer/commtest/sweep.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <barrier>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "trainer/commtest/run.h"

// Ranks as threads over a communicator of shared memory, which can be told to corrupt data.

namespace muster::commtest {
namespace {

struct Hub {
  explicit Hub(int64_t n) : ranks(n), tensors(static_cast<size_t>(n)), barrier(n) {}
  const int64_t ranks;
  std::vector<at::Tensor> tensors;
  std::barrier<> barrier;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int64_t, int64_t>, std::vector<at::Tensor>> mail;
  std::function<void(int64_t from, int64_t to, at::Tensor&)> corrupt = [](auto, auto, auto&) {};
};

class ThreadGroup : public parallel::Communicator {
 public:
  ThreadGroup(Hub& hub, int64_t rank) : hub_(hub), rank_(rank) {}
  int64_t rank() const override { return rank_; }
  int64_t size() const override { return hub_.ranks; }

  void AllReduce(at::Tensor tensor, parallel::ReduceOp op) override {
    Exchange(
        tensor,
        [&](const std::vector<at::Tensor>& all) {
          at::Tensor out = all[0].clone();
          for (size_t r = 1; r < all.size(); ++r) {
            if (op == parallel::ReduceOp::kSum) {
              out += all[r];
            } else {
              out = at::maximum(all[r], out);
            }
          }
          return out;
        },
        tensor);
  }
  void Broadcast(at::Tensor tensor, int64_t root) override {
    Exchange(
        tensor, [&](const auto& all) { return all[static_cast<size_t>(root)].clone(); }, tensor);
  }
  void AllGather(at::Tensor output, at::Tensor input) override {
    Exchange(
        input, [](const auto& all) { return at::cat(all); }, output);
  }
  void ReduceScatter(at::Tensor output, at::Tensor input) override {
    Exchange(
        input,
        [&](const auto& all) {
          at::Tensor out = at::zeros_like(output);
          for (const at::Tensor& part : all) {
            out += part.narrow(0, rank_ * output.numel(), output.numel());
          }
          return out;
        },
        output);
  }
  void Send(at::Tensor tensor, int64_t to) override {
    const std::lock_guard lock(hub_.mutex);
    at::Tensor copy = tensor.clone();
    hub_.corrupt(rank_, to, copy);
    hub_.mail[{rank_, to}].push_back(copy);
    hub_.changed.notify_all();
  }
  void Receive(at::Tensor tensor, int64_t from) override {
    std::unique_lock lock(hub_.mutex);
    auto& box = hub_.mail[{from, rank_}];
    hub_.changed.wait(lock, [&] { return !box.empty(); });
    tensor.copy_(box.front());
    box.erase(box.begin());
  }
  void SendReceive(at::Tensor sent, int64_t to, at::Tensor received, int64_t from) override {
    Send(sent, to);
    Receive(received, from);
  }
  void Barrier() override { hub_.barrier.arrive_and_wait(); }
  void Synchronize() override {}

 private:
  template <class Combine>
  void Exchange(const at::Tensor& mine, Combine combine, at::Tensor& out) {
    hub_.tensors[static_cast<size_t>(rank_)] = mine;
    hub_.barrier.arrive_and_wait();
    const at::Tensor result = combine(hub_.tensors);
    hub_.barrier.arrive_and_wait();  // all have read before anybody writes
    out.copy_(result);
  }
  Hub& hub_;
  const int64_t rank_;
};

std::vector<Report> RunAll(Hub& hub, const Options& options,
                           const std::vector<std::string>& hosts) {
  std::vector<Report> reports(hosts.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    threads.emplace_back([&, rank] {
      Group group(std::make_unique<ThreadGroup>(hub, static_cast<int64_t>(rank)), nullptr,
                  at::Device(at::kCPU));
      reports[rank] = RunTest(group, options, hosts[rank], [](const std::string&) {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return reports;
}

Options Small() {
  return ParseOptions({"--backend", "gloo", "-e", "4K", "--pair-bytes", "1K", "--pair-iters", "4"});
}

TEST(RunTest, EveryRankGetsTheSameReportAndAllIsRight) {
  Hub hub(5);
  const auto reports = RunAll(hub, Small(), {"a", "a", "b", "c", "c"});
  for (const Report& report : reports) {
    EXPECT_EQ(report.sweep.size(), 5u * 4u);
    EXPECT_TRUE(WrongData(report).empty());
    EXPECT_EQ(JsonText(report), JsonText(reports[0]));
    EXPECT_EQ(report.pairs.size(), 3u);
    for (const PairRow& row : report.pairs) EXPECT_GT(row.bandwidth, 0);
  }
}

TEST(RunTest, OneRank) {
  Hub hub(1);
  const auto reports = RunAll(hub, Small(), {"a"});
  EXPECT_TRUE(WrongData(reports[0]).empty());
  EXPECT_TRUE(reports[0].pairs.empty());
}

// A link that changes a bit in one direction: the pair is named, and the direction.
TEST(RunTest, ACorruptingLinkIsNamed) {
  Hub hub(3);
  hub.corrupt = [](int64_t from, int64_t to, at::Tensor& tensor) {
    if (from == 1 && to == 2 && tensor.numel() > 100) tensor.data_ptr<float>()[77] += 1;
  };
  const auto reports = RunAll(hub, Small(), {"a", "b", "c"});
  const auto wrong = WrongData(reports[0]);
  ASSERT_EQ(wrong.size(), 3u);
  EXPECT_EQ(wrong[0], "6 wrong elements in sendrecv of 512 bytes, first at rank 2 (c)");
  EXPECT_EQ(wrong[2].substr(wrong[2].find("from")), "from b to c");
  EXPECT_EQ(WrongData(reports[2]), wrong);
}

}  // namespace
}  // namespace muster::commtest
