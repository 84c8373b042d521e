#include "trainer/tools/ordered_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <stdexcept>

namespace muster::tools {
namespace {

using Pool = OrderedPool<int, int>;

constexpr size_t kMaxWeight = 1000;

void RunPool(const Pool::Read& read, const std::vector<Pool::Work>& workers,
             const Pool::Write& write) {
  Pool::Run(
      read, workers, write, [](int) { return size_t{1}; }, kMaxWeight);
}

std::vector<Pool::Work> Workers(int count, Pool::Work work) {
  return std::vector<Pool::Work>(static_cast<size_t>(count), std::move(work));
}

Pool::Read CountTo(int end) {
  return [end, next = 0](int& item) mutable {
    item = next;
    return next++ < end;
  };
}

TEST(OrderedPool, ResultsKeepTheOrderOfTheInput) {
  for (const int workers : {1, 2, 7}) {
    std::vector<int> got;
    RunPool(CountTo(5000), Workers(workers, [](int& i) { return 2 * i; }),
            [&got](int result) { got.push_back(result); });
    ASSERT_EQ(got.size(), 5000U);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], 2 * i);
  }
}

TEST(OrderedPool, NothingToDo) {
  RunPool(CountTo(0), Workers(3, [](int& i) { return i; }), [](int) { FAIL(); });
}

TEST(OrderedPool, TheFirstErrorInOrderIsTheOneReported) {
  for (int round = 0; round < 50; ++round) {
    int written = 0;
    try {
      RunPool(CountTo(1000),
              Workers(4,
                      [](int& i) {
                        if (i >= 100) throw std::runtime_error(std::to_string(i));
                        return i;
                      }),
              [&written](int) { ++written; });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "100");
    }
    EXPECT_EQ(written, 100);
  }
}

TEST(OrderedPool, ErrorsOfReaderAndWriterEndTheRun) {
  const auto read = [next = 0](int& item) mutable -> bool {
    item = next;
    if (next++ == 10) throw std::runtime_error("read");
    return true;
  };
  int written = 0;
  EXPECT_THROW(RunPool(read, Workers(2, [](int& i) { return i; }), [&written](int) { ++written; }),
               std::runtime_error);
  EXPECT_EQ(written, 10) << "what was read before the error is written";
  EXPECT_THROW(RunPool(CountTo(1000), Workers(2, [](int& i) { return i; }),
                       [](int i) {
                         if (i == 5) throw std::runtime_error("write");
                       }),
               std::runtime_error);
}

TEST(OrderedPool, AtMostAFewItemsAreInFlight) {
  std::atomic<int> in_flight = 0;
  std::atomic<int> most = 0;
  const auto read = [&, next = 0](int& item) mutable {
    item = next;
    if (next++ >= 2000) return false;
    most = std::max(most.load(), ++in_flight);
    return true;
  };
  RunPool(read, Workers(2, [](int& i) { return i; }), [&](int) { --in_flight; });
  // One more being read.
  EXPECT_LE(most, static_cast<int>(2 * Pool::kItemsPerWorker + 1));
}

// Weights 0 .. 9; what is in flight weighs at most 12, and a heavy item is alone.
TEST(OrderedPool, BoundsTheWeightInFlight) {
  constexpr int kMax = 12;
  constexpr int kHeavy = 100;
  const auto weigh = [](int i) { return static_cast<size_t>(i % 50 == 0 ? kHeavy : i % 10); };
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  std::vector<int> got;
  const auto work = [&](int& i) {
    const int weight = static_cast<int>(weigh(i));
    const int now = working += weight;
    if (weight == kHeavy) {
      EXPECT_EQ(now, kHeavy);
    } else {
      int seen = most;
      while (now > seen && !most.compare_exchange_weak(seen, now)) {
      }
    }
    working -= weight;
    return i;
  };
  Pool::Run(
      CountTo(2000), Workers(4, work), [&got](int i) { got.push_back(i); }, weigh, kMax);
  EXPECT_LE(most, kMax);
  EXPECT_EQ(got.size(), 2000U);
}

// Starts `most` threads, then has none left.
Pool::Start StartAtMost(int most) {
  return [most, started = 0](std::function<void()> body) mutable {
    if (started++ == most) {
      throw std::system_error(EAGAIN, std::generic_category(), "no more threads");
    }
    return std::thread(std::move(body));
  };
}

TEST(OrderedPool, GoesOnWithTheThreadsThatTheSystemGives) {
  const auto run = [](int threads) {
    std::vector<int> got;
    Pool::Run(
        CountTo(100), Workers(5, [](int& i) { return i; }), [&got](int i) { got.push_back(i); },
        [](int) { return size_t{1}; }, kMaxWeight, StartAtMost(threads));
    return got.size();
  };
  for (const int enough : {2, 3, 6}) EXPECT_EQ(run(enough), 100U);
  for (const int too_few : {0, 1}) EXPECT_THROW(run(too_few), std::system_error);
}

}  // namespace
}  // namespace muster::tools
