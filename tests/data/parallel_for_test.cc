// Every part is worked on, however many threads the system gives.
#include "trainer/data/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>

namespace muster::data {
namespace {

std::atomic<int> threads_left;

// A thread while there are any left.
class ScarceThread {
 public:
  ScarceThread(const std::function<void(int)>& run, int part) {
    if (threads_left-- <= 0) {
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    thread_ = std::jthread(run, part);
  }

 private:
  std::jthread thread_;
};

TEST(ParallelFor, WorksOnEveryPartWithFewerThreadsThanParts) {
  for (int threads = 0; threads <= 8; ++threads) {
    threads_left = threads;
    std::vector<int> visits(100, 0);
    std::vector<int> parts(8, 0);
    ParallelFor<ScarceThread>(100, 8, [&](int part, int64_t begin, int64_t end) {
      ++parts[static_cast<size_t>(part)];
      for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
    });
    EXPECT_EQ(visits, std::vector<int>(100, 1)) << threads;
    EXPECT_EQ(parts, std::vector<int>(8, 1)) << threads;
  }
}

TEST(ParallelFor, ThrowsWhatTheFirstPartThrew) {
  for (int threads = 0; threads <= 4; ++threads) {
    threads_left = threads;
    try {
      ParallelFor<ScarceThread>(4, 4, [](int part, int64_t, int64_t) {
        if (part > 0) throw std::runtime_error(std::to_string(part));
      });
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
  }
}

}  // namespace
}  // namespace muster::data
